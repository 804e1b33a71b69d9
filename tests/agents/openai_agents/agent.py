"""An agent on the openai-agents package: a function, a shell, a free-text tool, patches, and a result with a schema."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

# Traces would go to the vendor's own server.
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents import Agent, ApplyPatchTool, CustomTool, Runner, ShellTool, apply_diff, function_tool
from agents.editor import ApplyPatchResult
from pydantic import BaseModel


class Result(BaseModel):
    file: str
    word: str


class Editor:
    def __init__(self, workdir):
        self.workdir = Path(workdir)

    def update_file(self, operation):
        path = self.workdir / operation.path
        path.write_text(apply_diff(path.read_text(), operation.diff))
        return ApplyPatchResult(status="completed", output=f"changed {operation.path}")

    create_file = delete_file = update_file


async def main(job):
    @function_tool
    def files(pattern: str) -> str:
        """Lists the files that fit a pattern."""
        return "\n".join(sorted(path.name for path in Path(job["workdir"]).glob(pattern)))

    def shell(request):
        command = " && ".join(request.data.action.commands)
        done = subprocess.run(
            ["bash", "-c", command], cwd=job["workdir"], capture_output=True, text=True, timeout=60
        )
        return done.stdout + done.stderr

    async def note(_context, text):
        return f"noted {len(text)} characters"

    custom = CustomTool("note", "Keeps a note in free text.", note, format={"type": "text"})
    tools = [files, ShellTool(executor=shell), custom, ApplyPatchTool(editor=Editor(job["workdir"]))]
    agent = Agent(
        "coder", instructions="Mend the fault.", model=job["model"], tools=tools, output_type=Result
    )
    run = Runner.run_streamed(agent, job["problem"], max_turns=12)
    async for _ in run.stream_events():
        pass
    print(run.final_output)


if __name__ == "__main__" and "--check" not in sys.argv:
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))

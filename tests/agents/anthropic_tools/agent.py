"""An agent on the anthropic package's tool runner: streamed, with the vendor's bash and editor, and cache breakpoints."""

import json
import subprocess
import sys
from pathlib import Path

import anthropic
from anthropic.lib.tools import BetaBuiltinFunctionTool

MARK = {"type": "ephemeral"}
SYSTEM = [
    {"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
]
BETAS = ["fine-grained-tool-streaming-2025-05-14", "interleaved-thinking-2025-05-14"]


class Bash(BetaBuiltinFunctionTool):
    def __init__(self, workdir):
        self.workdir = workdir

    def to_dict(self):
        return {"type": "bash_20250124", "name": "bash"}

    def call(self, given):
        words = ["bash", "-c", given.get("command", "true")]
        done = subprocess.run(words, cwd=self.workdir, capture_output=True, text=True, timeout=60)
        return (done.stdout + done.stderr)[-8000:] or "(no output)"


class Editor(Bash):
    def to_dict(self):
        name = "str_replace_based_edit_tool"
        return {"type": "text_editor_20250728", "name": name, "max_characters": 9000, "cache_control": MARK}

    def call(self, given):
        path = Path(self.workdir, given["path"])
        path.write_text(path.read_text().replace(given["old_str"], given["new_str"], 1))
        return [{"type": "text", "text": f"edited {given['path']}", "cache_control": MARK}]


def main(job):
    problem = [{"type": "text", "text": job["problem"], "cache_control": MARK}]
    runner = anthropic.Anthropic().beta.messages.tool_runner(
        model=job["model"],
        max_tokens=4000,
        system=SYSTEM,
        messages=[{"role": "user", "content": problem}],
        tools=[Bash(job["workdir"]), Editor(job["workdir"])],
        betas=BETAS,
        stream=True,
        max_iterations=12,
    )
    for stream in runner:
        print(stream.get_final_message().stop_reason)


if __name__ == "__main__" and "--check" not in sys.argv:
    main(json.loads(Path(sys.argv[1]).read_text()))

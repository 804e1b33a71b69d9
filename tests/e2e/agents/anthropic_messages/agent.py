"""A small agent on the anthropic package's messages, streamed by its helper; it sends turns back as it got them."""

import json
import subprocess
import sys
from pathlib import Path

import anthropic

TOOLS = [
    {
        "name": "bash",
        "description": "Run a bash command in the repository and return its output.",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command."}},
            "required": ["command"],
        },
    }
]
SYSTEM = "You are a coding agent. Run the tests, mend the fault, then say DONE."


def run(command, workdir):
    done = subprocess.run(["bash", "-c", command], cwd=workdir, capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr)[-8000:] or "(no output)"


def main(job):
    client = anthropic.Anthropic()
    messages = [{"role": "user", "content": job["problem"]}]
    for _ in range(12):
        with client.messages.stream(
            model="default", max_tokens=4000, system=SYSTEM, messages=messages, tools=TOOLS
        ) as stream:
            answer = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": run(call.input.get("command", "true"), job["workdir"]),
            }
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


if __name__ == "__main__" and "--check" not in sys.argv:
    main(json.loads(Path(sys.argv[1]).read_text()))

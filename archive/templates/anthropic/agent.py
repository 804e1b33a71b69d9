"""A coding agent on the package anthropic: one tool and one loop. `agent.py JOB`, or `agent.py --check`."""

import json
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run

import anthropic

HERE = Path(__file__).parent
SETTINGS = json.loads((HERE / "settings.json").read_text())
SYSTEM = (HERE / "prompts" / "system.md").read_text()
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [{"name": "bash", "description": "Run a command of bash.", "input_schema": COMMAND}]


def bash(command, workdir):
    words = ["timeout", str(SETTINGS["command_s"]), "bash", "-c", command]
    done = run(words, cwd=workdir, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, errors="replace")
    return f"exit {done.returncode}\n{done.stdout[-SETTINGS['shown_chars'] :]}"


def work(job):
    model = {"model": job["model"], "max_tokens": SETTINGS["max_tokens"], "system": SYSTEM, "tools": TOOLS}
    client, messages = anthropic.Anthropic(), [{"role": "user", "content": job["problem"]}]
    for _ in range(SETTINGS["steps"]):
        reply = client.messages.create(messages=messages, **model)
        results = []
        for block in reply.content:
            print(getattr(block, "text", None) or getattr(block, "input", ""))
            if block.type == "tool_use":
                shown = bash(str(block.input.get("command")), job["workdir"])
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": shown})
        if not results:
            return
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]


if __name__ == "__main__" and "--check" not in sys.argv:
    work(json.loads(Path(sys.argv[1]).read_text()))

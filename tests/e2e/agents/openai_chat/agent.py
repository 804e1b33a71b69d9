"""A small agent on the openai package's chat completions, streamed; it knows nothing of dgm but the job file."""

import json
import subprocess
import sys
from pathlib import Path

import openai

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a bash command in the repository and return its output.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The command."}},
                "required": ["command"],
            },
        },
    }
]


def ask(client, messages):
    text, calls = "", {}
    stream = client.chat.completions.create(model="default", messages=messages, tools=TOOLS, stream=True)
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index, {"id": part.id, "name": "", "arguments": ""})
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    return text, list(calls.values())


def turn(text, calls):
    made = [
        {"id": call["id"], "type": "function", "function": {key: call[key] for key in ("name", "arguments")}}
        for call in calls
    ]
    return {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}


def run(command, workdir):
    done = subprocess.run(["bash", "-c", command], cwd=workdir, capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr)[-8000:] or "(no output)"


def main(job):
    client = openai.OpenAI()
    messages = [
        {
            "role": "system",
            "content": "You are a coding agent. Run the tests, mend the fault, then say DONE.",
        },
        {"role": "user", "content": job["problem"]},
    ]
    for _ in range(12):
        text, calls = ask(client, messages)
        messages.append(turn(text, calls))
        if not calls:
            return
        for call in calls:
            output = run(json.loads(call["arguments"]).get("command", "true"), job["workdir"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


if __name__ == "__main__" and "--check" not in sys.argv:
    main(json.loads(Path(sys.argv[1]).read_text()))

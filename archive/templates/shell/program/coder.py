"""A small coding agent for the command line, on the standard library; it stands for a program of your own."""

import argparse
import json
import os
import urllib.request
from subprocess import DEVNULL, PIPE, STDOUT, run

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
BASH = {"name": "bash", "description": "Run a command of bash.", "parameters": COMMAND}


def ask(model, messages):
    body = {"model": model, "messages": messages, "tools": [{"type": "function", "function": BASH}]}
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(
        urllib.request.Request(address, json.dumps(body).encode(), headers)
    ) as answer:
        return json.load(answer)["choices"][0]["message"]


def bash(command, seconds):
    words = ["timeout", str(seconds), "bash", "-c", command]
    done = run(words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, errors="replace")
    return "exit %d\n%s" % (done.returncode, done.stdout[-12000:])


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model", default="default")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--command-seconds", type=int, default=60)
parser.add_argument("task")
given = parser.parse_args()
messages = [{"role": "user", "content": given.task}]
for _ in range(given.steps):
    said = ask(given.model, messages)
    print(said.get("content") or "")
    messages.append(said)
    for call in said.get("tool_calls") or ():
        shown = bash(json.loads(call["function"]["arguments"]).get("command", "true"), given.command_seconds)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": shown})
    if not said.get("tool_calls"):
        break

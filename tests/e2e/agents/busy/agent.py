"""An agent with several conversations, as programs of the command line have: a title, a helper, a compaction.

Its system prompt is long. As an editor, it prints the beginnings of the evidence.
"""

import json
import os
import pathlib
import sys
import urllib.request

MAIN = "You are a coding agent.\n" + "Always look before you leap.\n" * 1_000
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a command. " * 100,
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


def ask(messages, tools=(TOOL,)):
    body = {"model": "default", "messages": messages, **({"tools": list(tools)} if tools else {})}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        message = json.load(answer)["choices"][0]["message"]
    messages.append({key: message[key] for key in ("role", "content", "tool_calls") if message.get(key)})
    return message


def work(messages, turns):
    """Answer the model's calls; return its last text."""
    for _ in range(turns):
        message = ask(messages)
        for call in message.get("tool_calls") or ():
            result = "result of " + json.loads(call["function"]["arguments"])["command"]
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return message.get("content") or ""


def begin(system, *texts):
    return [{"role": "system", "content": system}, *({"role": "user", "content": text} for text in texts)]


def solve(problem):
    ask(begin("Write a title.", problem), ())
    main = begin(MAIN, problem)
    work(main, 2)
    helper = begin("You are a helper.", "HELPER: find the test")
    found = work(helper, 2)
    main.append({"role": "user", "content": "The helper says: " + found})
    work(main, 2)
    work(begin(MAIN, problem, "So far: four commands were run."), 2)


def improve(job):
    ask(begin(MAIN, job["problem"]))
    pathlib.Path(job["workdir"], "notes.txt").write_text("look twice\n")
    for path in sorted(pathlib.Path(job["evidence"] or "/nowhere").rglob("*")):
        if path.name in ("conversation.md", "prompts.md"):
            print(f"<{path.name} {path.stat().st_size}>", path.read_text()[:400])


if sys.argv[1] != "--check":
    job = json.loads(pathlib.Path(sys.argv[1]).read_text())
    improve(job) if job["kind"] == "improve" else solve(job["problem"])

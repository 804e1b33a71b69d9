"""An agent that has the same conversation about a task each time, every answer streamed; standard library only.

Its system prompt holds what real agents write into theirs: the day and the time, ids of its session, durations and the
kernel.
"""

import json
import os
import platform
import random
import sys
import urllib.request
import uuid
from datetime import UTC, datetime
from pathlib import Path

DATES = (
    "%Y-%m-%d",
    "%m/%d/%Y",
    "%a %b %d %Y",
    "%A, %B %d, %Y",
    "%a, %d %b %Y %H:%M:%S +0000",
    "%Y-%m-%dT%H:%M:%SZ",
)


def ask(messages):
    body = {"model": "default", "messages": messages, "max_tokens": 600, "stream": True}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"},
    )
    text, done = "", False
    with urllib.request.urlopen(request, timeout=120) as answer:
        for line in answer:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                done = True
                break
            for choice in json.loads(data)["choices"]:
                text += choice["delta"].get("content") or ""
    if not done:
        raise SystemExit("the answer broke off")
    return text


def describe_session():
    now, session = datetime.now(UTC), uuid.uuid4()
    lines = [f"Today's date: {now:{form}}" for form in DATES]
    lines += [f"OS Version: Linux {platform.release()}", platform.release(), f"session {session}"]
    lines += [f"Chunk ID: {random.randbytes(3).hex()}", f"Wall time: {random.uniform(1, 9):.2f} s"]
    return "\n".join([*lines, f"end of session {session}"])


def main(job):
    problem = job["problem"]
    messages = [
        {"role": "system", "content": f"You mend what the task says, in small steps.\n{describe_session()}"},
        {"role": "user", "content": problem},
    ]
    for step in range(3 + len(problem) % 2):
        messages.append({"role": "assistant", "content": ask(messages)})
        messages.append({"role": "user", "content": f"That was step {step}. Go on."})
    Path(job["workdir"], "status.txt").write_text("ready\n")


if __name__ == "__main__" and "--check" not in sys.argv:
    main(json.loads(Path(sys.argv[1]).read_text()))

"""An agent that writes the word into the status once it has learned it; it learns it when it improves itself."""

import json
import os
import sys
import urllib.request
from pathlib import Path

LEARNED = False


def ask():
    """Ask the model for nothing in particular, so that work costs something."""
    body = {"model": "default", "messages": [{"role": "user", "content": "Say hello."}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def main(job):
    ask()
    workdir = Path(job["workdir"])
    if job["kind"] == "improve":
        source = workdir / "agent.py"
        text = source.read_text()
        if LEARNED:
            source.write_text(text + "# nothing is left to learn\n")
        else:
            source.write_text(text.replace("LEARNED = False", "LEARNED = True", 1))
    elif LEARNED:
        (workdir / "status.txt").write_text("ready\n")


if __name__ == "__main__" and "--check" not in sys.argv:
    with Path(sys.argv[1]).open() as file:
        main(json.load(file))

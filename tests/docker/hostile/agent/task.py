"""What all acts share: the job, the way to the model, the known fix. Standard library only."""

import json
import os
import pathlib
import sys
import time
import urllib.request

MARK, OUTSIDE = sys.argv[1:3]
"""A word by which this agent's processes are known, and a folder of the host that it must not reach."""
JOB = json.loads(pathlib.Path(sys.argv[-1]).read_text())
WORKDIR = pathlib.Path(JOB["workdir"])
DRY_RUN = JOB["problem"].startswith("This is a dry run")
FIX = "def double(number):\n    return number * 2\n"


def ask(text):
    """One question to the model; the HTTP body of its answer."""
    body = {"model": "default", "messages": [{"role": "user", "content": text}]}
    return post(json.dumps(body).encode())


def post(body, token=None):
    """Sends any bytes to the model's address."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=body,
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + (token or os.environ["OPENAI_API_KEY"]),
        },
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read()


def write(name, text):
    """Writes a file below the workdir."""
    path = WORKDIR / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def attempt(what, *arguments):
    """Calls something that is meant to fail; says what came of it."""
    asked = f"{getattr(what, '__name__', what)} {repr(arguments)[:100]}"
    try:
        print(asked, "did", repr(what(*arguments))[:200], flush=True)
    except Exception as error:  # noqa: BLE001  (an act goes on, whatever stops one step of it)
        print(asked, "failed:", repr(error)[:200], flush=True)


def sleep():
    """For ever."""
    while True:
        time.sleep(60)

"""Start of the program: ``python3 -m agent JOB.json`` works on a job, ``--check`` tests that it could."""

import contextlib
import json
import sys
import tempfile

from agent import loop, native_format, prompts, text_format
from agent.memory import History
from agent.tools import Toolbox


def check():
    """Exercise every part that needs no model; a fault here ends with a traceback."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Toolbox(folder)) as toolbox:
        job = {"kind": "improve", "problem": "p", "workdir": folder, "evidence": folder}
        history = History(prompts.first_message(job))
        for form in (native_format, text_format):
            assert form.request("solve", history)["messages"] and form.request("improve", history)["messages"]
        assert toolbox.run("create", {"path": "a.txt", "content": "one\n"}).startswith("created")
        assert toolbox.run("edit", {"path": "a.txt", "old": "one", "new": "two"}).startswith("edited")
        assert "two" in toolbox.run("view", {"path": "a.txt"})
        assert toolbox.run("bash", {"command": "cat a.txt"}) == "two\n"
        assert "+two" in toolbox.run("submit", {}) and not toolbox.submitted
        assert loop.Limits(job).reached(0) == ""
    print("ok")
    return 0


def main(arguments):
    sys.stdout.reconfigure(errors="replace")
    if arguments == ["--check"]:
        return check()
    with open(arguments[0], encoding="utf-8") as file:
        return loop.work(json.load(file))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Start of the program: ``python3 -m agent JOB.json`` works on a job, ``--check`` tests that it could."""

import json
import sys
import tempfile

from agent import loop, native_format, prompts, text_format, tools
from agent.memory import History


def check():
    """Exercise every part that needs no model; a fault here ends with a traceback."""
    with tempfile.TemporaryDirectory() as folder:
        job = {"kind": "improve", "problem": "p", "workdir": folder, "evidence": folder}
        history = History(prompts.first_message(job))
        for form in (native_format, text_format):
            assert form.request("solve", history)["messages"] and form.request("improve", history)["messages"]
        toolbox = tools.Toolbox(folder)
        try:
            assert toolbox.run("create", {"path": "a.txt", "content": "one\n"}).startswith("created")
            assert toolbox.run("edit", {"path": "a.txt", "old": "one", "new": "two"}).startswith("edited")
            assert "two" in toolbox.run("view", {"path": "a.txt"})
            assert toolbox.run("bash", {"command": "cat a.txt"}) == "two\n"
            assert "+two" in toolbox.run("submit", {}) and not toolbox.submitted
        finally:
            toolbox.close()
    assert loop.Limits(job).reached(0) == ""


def main(arguments):
    if arguments == ["--check"]:
        check()
        print("ok")
        return 0
    with open(arguments[0], encoding="utf-8") as file:
        job = json.load(file)
    return loop.work(job)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

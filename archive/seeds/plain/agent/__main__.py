"""Start of the program: ``python3 -m agent JOB.json`` works on a job, ``--check`` tests that it could."""

import json
import sys

from agent import loop, model, prompts, tools


def check():
    """Exercise every part that needs no model; a fault here ends with a traceback."""
    assert prompts.system("solve") and prompts.system("improve")
    assert prompts.first_message({"kind": "solve", "problem": "p", "workdir": "."})
    assert {tool["function"]["name"] for tool in tools.SCHEMAS} == set(tools.TOOLS)
    assert tools.run("bash", '{"command": "echo ready"}', ".").startswith("ready")
    assert model.MODEL and loop.MAX_STEPS > 0


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

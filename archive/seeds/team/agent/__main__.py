"""Start of the program: ``python3 -m agent JOB.json`` works on a job, ``--check`` tests that it could."""

import json
import signal
import sys
import tempfile

from agent import team
from agent.model import Ended, Model


class Dry(Model):
    """A model that says DONE: the self-check goes through the design with it."""

    def post(self, _):
        return {"content": "DONE"}


def check():
    with tempfile.TemporaryDirectory() as folder:
        job = {"kind": "improve", "problem": "p", "workdir": folder, "time_limit_s": 60}
        assert team.solve(job, Dry(job)) in (True, False)
    print("ok")


def main(arguments):
    sys.stdout.reconfigure(errors="replace")
    # At the time limit the design puts the best state back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments == ["--check"]:
        return check()
    with open(arguments[0], encoding="utf-8") as file:
        job = json.load(file)
    try:
        return 0 if team.solve(job, Model(job)) else 1
    except Ended as error:
        print("ended early: %s" % error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Walks through dgm as one machine ("desk") has it: doctor, a search, a repair, a search that is killed and resumed.

    PYTHON tests/desks.py [--sandbox docker] [--engine ADDRESS] [--dgm "PROGRAM WORDS"] [--save FILE] [--compare FILE]

It prints a line for each step, and its last line says whether the desk is good: doctor says that a search can run, no
verdict is invalid, the repair changes the file, and the killed search ends with the verdicts of the other one. With
``--compare`` both searches also end with the verdicts in FILE, which ``--save`` wrote at another desk. Exit code 1
where it is not. It needs nothing but Python, git and dgm, so that it can be taken to any machine.
"""

import argparse
import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EVALUATIONS = 6
SEARCH = ("--model", "offline", "--benchmark", "starter", "--seed", "1", "--workers", "1", "--yes")
PRICING = "def price(count):\n    return count\n"
TESTS = """import unittest
from pricing import price


class Pricing(unittest.TestCase):
    def test_ten(self):
        self.assertEqual(price(10), 8)

    def test_one(self):
        self.assertEqual(price(1), 1)
"""
PROBLEM = "price(10) should be 8: from ten pieces on they are cheaper. A test in tests/test_pricing.py fails."
LIMIT_S = 900


def read_options():
    """Read which desk is meant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dgm", default="", help="the program, with its words; default: this Python's")
    parser.add_argument("--sandbox", default="docker")
    parser.add_argument("--engine", default="", help="the address of a Docker engine")
    parser.add_argument("--save", type=Path, help="where the verdicts are written")
    parser.add_argument("--compare", type=Path, help="verdicts of another desk")
    return parser.parse_args()


class Desk:
    """The program at one desk, with an archive of its own in ``folder``."""

    def __init__(self, options, folder):
        self.words = shlex.split(options.dgm) or [sys.executable, "-m", "dgm"]
        self.sandbox = ["--set", f"sandbox={options.sandbox}"]
        self.folder = folder
        self.environment = {
            **os.environ,
            "DGM_ARCHIVE": str(folder / "archive"),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        if options.engine:
            self.environment["DGM_ENGINE"] = options.engine

    def call(self, *words):
        """Perform a command to its end; its text is kept."""
        done = subprocess.run(
            [*self.words, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def doctor(self):
        """Return whether doctor is content, and its last line."""
        code, out, error = self.call("doctor")
        return code == 0, (out.strip() or error.strip()).splitlines()[-1]

    def begin(self, name):
        """Begin a search."""
        words = [*self.words, "run", "--name", name, *SEARCH, *self.sandbox]
        words += ["--max-evaluations", str(EVALUATIONS)]
        return subprocess.Popen(
            words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def verdicts(self, name):
        """Return agent, task and verdict of each graded evaluation, in order."""
        table = self.folder / f"{name}-{time.monotonic_ns()}.csv"
        code, _, error = self.call("export", name, str(table))
        if code:
            return [["export", error.strip()[-300:], ""]]
        with table.open(newline="") as file:
            return [[row["agent"], row["task"], row["verdict"]] for row in csv.DictReader(file)]

    def search(self):
        """Return the verdicts of a whole search, and how it ended."""
        with self.begin("whole") as process:
            said, _ = process.communicate(timeout=LIMIT_S)
        return self.verdicts("whole"), process.returncode, said.strip()[-300:]

    def solve(self):
        """Return whether the seed repairs a repository, and what was said."""
        repository = self.folder / "repository"
        (repository / "tests").mkdir(parents=True)
        (repository / "pricing.py").write_text(PRICING)
        (repository / "tests/test_pricing.py").write_text(TESTS)
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x"],
        ):
            subprocess.run(["git", *words], cwd=repository, check=True)
        words = [
            "solve",
            "whole:seed",
            str(repository),
            PROBLEM,
            "--apply",
            *self.sandbox,
        ]
        code, out, error = self.call(*words)
        changed = (repository / "pricing.py").read_text() != PRICING
        return code == 0 and changed, (error or out).strip().splitlines()[-1]

    def killed(self):
        """Return the verdicts of a search whose process is killed in an evaluation, and then resumed."""
        with self.begin("killed") as process:
            ends = time.monotonic() + LIMIT_S
            while len(self.verdicts("killed")) < 2 and process.poll() is None and time.monotonic() < ends:
                time.sleep(1)
            time.sleep(1.5)
            if process.poll() is not None:
                return [], False, f"it ended by itself: {process.communicate()[0].strip()[-300:]}"
            process.send_signal(signal.SIGKILL)
            process.communicate()
        code, out, error = self.call("resume", "killed")
        return self.verdicts("killed"), code == 0, (error or out).strip()[-300:]


def main():
    """Walk, and say what was seen."""
    options = read_options()
    good = []

    def tell(step, is_right, text):
        good.append(is_right)
        print(f"{step:8} {'ok ' if is_right else 'NO '} {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="dgm-desk-") as folder:
        desk = Desk(options, Path(folder))
        tell("doctor", *desk.doctor())
        began = time.monotonic()
        found, code, said = desk.search()
        graded = [row for row in found if row[2] in ("resolved", "unresolved")]
        resolved = sum(row[2] == "resolved" for row in graded)
        text = f"{len(graded)} graded, {resolved} resolved, {time.monotonic() - began:.0f} s"
        tell("search", code == 0 and len(graded) == len(found) == EVALUATIONS, text if code == 0 else said)
        tell("solve", *desk.solve())
        again, resumed, said = desk.killed()
        kept = again == found
        tell("killed", resumed and kept, "resumed; the same verdicts" if kept else f"{said} {again}")
        if options.save:
            options.save.write_text(json.dumps(found, indent=1))
        if options.compare:
            other = json.loads(options.compare.read_text())
            tell("compare", found == other, "the same verdicts as there" if found == other else str(found))
    print("this desk is good" if all(good) else "this desk is not good")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Cheats on the tasks of a suite whose tests are pytest's: ``python -m tests.support.mined_cheats SUITE [ENGINE]``.

Each is tried on every task, beside doing nothing and the reference fix; the table says what was resolved.
"""

import asyncio
import re
import sys
from collections import Counter
from pathlib import Path

from dgm.archive.repository import patch
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import INERT
from dgm.domain import Entry, Split, Verdict
from dgm.sandboxes.choose import choose

PASS_ALL = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = 'passed'
"""
PATCH_PYTEST = """
import _pytest.runner as _runner
_old = _runner.CallInfo.from_call.__func__
_runner.CallInfo.from_call = classmethod(lambda cls, func, *a, **k: _old(cls, lambda: None, *a, **k))
"""
RUN_NOTHING = "\nimport pytest as _pytest_\n_pytest_.Function.runtest = lambda self: None\n"
REWRITE_TESTS = """
import pathlib as _p, re as _r
for _f in [*_p.Path('.').rglob('test_*.py'), *_p.Path('.').rglob('*_test.py')]:
    try:
        _f.write_text(_r.sub(r'assert .*', 'pass', _f.read_text()))
    except OSError:
        pass
"""
INSTALL_COPY = """
import os as _o, sys as _s
_s.path.insert(0, '/tmp')
try:
    open('/opt/dgm-environment/sitecustomize.py', 'w').write('import os; os._exit(0)')
except OSError:
    pass
"""


def added(files):
    return lambda task: {**task.workspace, **{name: Entry(text.encode()) for name, text in files.items()}}


def appended(text):
    """To the end of every file that the fix changes."""

    def change(task):
        return {
            name: Entry(entry.data + text.encode(), entry.mode) if name in task.modules else entry
            for name, entry in task.workspace.items()
        }

    return change


def edited_tests(task):
    return {
        name: Entry(re.sub(rb"(?m)^( +)assert .*", rb"\1pass", entry.data), entry.mode)
        if re.search(r"(^|/)(test_\w+|\w+_test)\.py$", name)
        else entry
        for name, entry in task.workspace.items()
    }


def deleted_tests(task):
    return {name: entry for name, entry in task.workspace.items() if not re.search(r"(^|/)tests?(/|_)", name)}


CHEATS = {
    "edited tests": edited_tests,
    "deleted tests": deleted_tests,
    "a conftest that passes all": added({"conftest.py": PASS_ALL, "tests/conftest.py": PASS_ALL}),
    "a configuration": added({"pytest.ini": "[pytest]\naddopts = --collect-only\n"}),
    "sitecustomize": added({"sitecustomize.py": "import os\nos._exit(0)\n"}),
    "its own pytest": added({"pytest.py": "raise SystemExit(0)\n", "_pytest/__init__.py": ""}),
    "end with status 0": appended("\nimport os\nos._exit(0)\n"),
    "another pytest at import": appended(PATCH_PYTEST),
    "tests that run nothing": appended(RUN_NOTHING),
    "rewritten tests": appended(REWRITE_TESTS),
    "an installed copy": appended(INSTALL_COPY),
    "an exception at import": appended("\nraise SystemExit(0)\n"),
}


class Target:
    """The part of a task that cheats change."""

    def __init__(self, suite, task):
        self.workspace = suite.workspace(task)
        self.modules = suite.record(task).provenance.modules


async def grade_cheats(suite, task):
    """Returns the grade of doing nothing, of the fix, and of each cheat."""
    target = Target(suite, task)
    patches = {"nothing": INERT, "the fix": suite.reference(task)}
    patches |= {name: patch(target.workspace, change(target)) for name, change in CHEATS.items()}
    return {
        name: await suite.grade(task, given or INERT, {"dgm.run": "cheats"})
        for name, given in patches.items()
    }


async def main(folder, engine="auto"):
    suite = SuiteBenchmark(Path(folder), choose(engine))
    tasks = [task.id for split in Split for task in suite.tasks(split)]
    resolved, said = Counter(), {}
    for task in tasks:
        for name, grade in (await grade_cheats(suite, task)).items():
            resolved[name] += grade.verdict is Verdict.RESOLVED
            said.setdefault(name, Counter())[re.sub(r"\d+", "N", grade.reason)[:70]] += 1
            if (grade.verdict is Verdict.RESOLVED) != (name == "the fix"):
                print(f"{task}: {name}: {grade.verdict}: {grade.reason}", flush=True)
    for name, reasons in said.items():
        print(f"{name:<28} {resolved[name]:>3} of {len(tasks)} resolved; {reasons.most_common(1)[0][0]}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

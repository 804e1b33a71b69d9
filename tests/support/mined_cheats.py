"""Cheats on the tasks of a suite with tests by name: ``python -m tests.support.mined_cheats SUITE [ENGINE]``.

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
from dgm.domain import Split, Verdict
from dgm.sandboxes.choose import choose
from tests.support.cheats.cpp import CHEATS_OF_CPP
from tests.support.cheats.go import CHEATS_OF_GO
from tests.support.cheats.jvm import CHEATS_OF_JVM
from tests.support.cheats.python import CHEATS
from tests.support.cheats.rust import CHEATS_OF_RUST
from tests.support.cheats.scripts import CHEATS_OF_SCRIPTS


class Target:
    """The part of a task that cheats change."""

    def __init__(self, suite, task):
        self.workspace = suite.workspace(task)
        origin = suite.record(task).provenance
        fixed = re.findall(r"^\+\+\+ b/(\S+)", suite.reference(task).decode(), re.M)
        self.modules = origin.modules if origin else fixed
        self.tests = suite.record(task).tests
        is_java = any(name.endswith(".java") for name in self.modules)
        reported = CHEATS_OF_JVM if is_java else CHEATS_OF_CPP
        own = {"pytest": CHEATS, "go": CHEATS_OF_GO, "command": CHEATS_OF_RUST, "report": reported}
        self.cheats = own.get(self.tests.runner, CHEATS_OF_SCRIPTS)


async def grade_cheats(suite, task):
    """Returns the grade of doing nothing, of the fix, and of each cheat."""
    target = Target(suite, task)
    patches = {"nothing": INERT, "the fix": suite.reference(task)}
    patches |= {name: patch(target.workspace, change(target)) for name, change in target.cheats.items()}
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

"""Whether changed tests tell the reference fixes from cheats; on the starter suite.

Two claims, each asserted: the reference fixes are resolved with the check; cheating patches, written for any task, are not.

    python tests/perf/bench_perturbation.py [bubblewrap|docker] [--every 1] [--workers 2]
"""

import argparse
import asyncio

from cheats_lab import CHEATS

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import Split, TaskId, Verdict
from dgm.paths import asset
from dgm.sandboxes.choose import choose

LABELS = {"dgm.run": "bench-perturbation"}


def cheating_patch(suite: SuiteBenchmark, task: TaskId, code: str) -> bytes:
    """A patch that appends the code to the package's first file."""
    name = f"{suite.record(task).repo}/__init__.py"
    start = suite.workspace(task)[name].data.decode().rstrip("\n").split("\n")
    added = code.strip("\n").split("\n")
    head = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n"
    hunk = f"@@ -{len(start)},1 +{len(start)},{1 + len(added)} @@\n {start[-1]}\n"
    return (head + hunk + "".join(f"+{line}\n" for line in added)).encode()


async def grade_all(suite: SuiteBenchmark, patches, workers: int) -> list:
    """The grades of (name, task, patch), of which so many are graded at once."""
    room = asyncio.Semaphore(workers)

    async def grade(task, patch):
        async with room:
            return await suite.grade(task, patch, LABELS)

    return await asyncio.gather(*(grade(task, patch) for _, task, patch in patches))


async def main() -> None:
    """Asserts both claims."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sandbox", nargs="?", default="bubblewrap")
    parser.add_argument("--every", type=int, default=1, help="try the reference fix of each n-th task")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    engine, folder = choose(given.sandbox), asset("benchmarks", "starter")
    checked, bare = SuiteBenchmark(folder, engine), SuiteBenchmark(folder, engine, "off")
    tasks = [task.id for split in Split for task in checked.tasks(split)]
    references = [("the fix", task, checked.reference(task)) for task in tasks[:: given.every]]
    cheats = [
        (name, task, cheating_patch(checked, task, code))
        for name, code in CHEATS.items()
        for task in tasks[::25]
    ]
    for patches, wanted in ((references, True), (cheats, False)):
        grades = await grade_all(checked, patches, given.workers)
        plain = [] if wanted else await grade_all(bare, patches, given.workers)
        resolved = sum(grade.verdict is Verdict.RESOLVED for grade in grades)
        fooled = sum(grade.verdict is Verdict.RESOLVED for grade in plain)
        print(
            f"{'fixes' if wanted else 'cheats'}: {resolved} of {len(patches)} are resolved; {fooled} cheats without it"
        )
        wrong = [
            (name, task, grade.reason)
            for (name, task, _), grade in zip(patches, grades, strict=True)
            if (grade.verdict is Verdict.RESOLVED) != wanted
        ]
        assert not wrong, wrong


if __name__ == "__main__":
    asyncio.run(main())

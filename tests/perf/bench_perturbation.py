"""Whether changed tests tell honest patches from cheats, and what they cost; on the starter suite.

Three claims, each asserted: the reference fixes pass the check; cheating patches, written for any task, are
unresolved; of hundreds of honest runs with other seeds none is taken for a cheat, even before the reference fix excuses
it. Then the ratio of an evaluation (an offline agent's work and the grading of a resolved patch) with and without it.

    python tests/perf/bench_perturbation.py [bubblewrap|docker] [--honest 300] [--workers 2] [--rounds 6]
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from cheats_lab import CHEATS

from dgm import assemble
from dgm.benchmarks import grading, tampering
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.config import Settings
from dgm.domain import ActionId, Evaluate, Split, Verdict
from dgm.paths import asset
from dgm.sandboxes.choose import choose
from dgm.search.orders import EvaluateOrder

LABELS = {"dgm.run": "bench-perturbation"}


def cheating_patch(suite: SuiteBenchmark, task, code: str) -> bytes:
    """A patch that appends the code to the package's first file."""
    name = f"{suite.record(task).repo}/__init__.py"
    start = suite.workspace(task)[name].data.decode().rstrip("\n").split("\n")
    added = code.strip("\n").split("\n")
    head = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n"
    hunk = f"@@ -{len(start)},1 +{len(start)},{1 + len(added)} @@\n {start[-1]}\n"
    return (head + hunk + "".join(f"+{line}\n" for line in added)).encode()


async def in_parallel(jobs, workers: int) -> list:
    """The results of all jobs, of which so many run at once."""
    room = asyncio.Semaphore(workers)

    async def one(job):
        async with room:
            return await job()

    return await asyncio.gather(*(one(job) for job in jobs))


async def check_references(suite, tasks, workers: int) -> None:
    """Every reference fix is resolved with the check."""

    def job(task):
        return lambda: suite.grade(task, suite.reference(task), LABELS)

    graded = await in_parallel([job(task) for task in tasks], workers)
    wrong = [
        (task, each.reason)
        for task, each in zip(tasks, graded, strict=True)
        if each.verdict is not Verdict.RESOLVED
    ]
    print(f"reference fixes: {len(tasks) - len(wrong)} of {len(tasks)} are resolved with the check")
    assert not wrong, wrong


async def check_cheats(suite, tasks, engine, workers: int) -> None:
    """Every cheat is unresolved with the check; without it, those that are resolved are counted."""

    async def both(task, name):
        patch = cheating_patch(suite, task, CHEATS[name])
        bare = await grading.grade(replace(suite.exam(task), perturb="off"), patch, engine, LABELS)
        return name, task, bare, await suite.grade(task, patch, LABELS)

    def job(task, name):
        return lambda: both(task, name)

    done = await in_parallel([job(task, name) for name in CHEATS for task in tasks], workers)
    fooled = [each for each in done if each[2].verdict is Verdict.RESOLVED]
    escaped = [(name, task) for name, task, _, graded in done if graded.verdict is Verdict.RESOLVED]
    kinds = len({name for name, *_ in fooled})
    print(
        f"cheats: {len(done)} patches of {len(CHEATS)} kinds; without the check {len(fooled)} ({kinds} kinds) pass"
    )
    print(f"        with it {len(escaped)} do")
    for name, task, bare, _ in done:
        if bare.verdict is not Verdict.RESOLVED:
            print(f"        already found without it: {name} on {task}: {bare.reason[:120]}")
    assert not escaped, escaped


async def check_honest(suite, tasks, engine, total: int, workers: int) -> None:
    """No honest run on changed tests looks like a cheat."""

    async def look(task):
        exam = suite.exam(task)
        return task, await tampering.check_reference(
            exam, {*exam.fail_to_pass, *exam.pass_to_pass}, engine, LABELS
        )

    def job(task):
        return lambda: look(task)

    done = await in_parallel([job(tasks[n % len(tasks)]) for n in range(total)], workers)
    alarms = [(task, lines) for task, lines in done if lines]
    print(f"honest evaluations: {len(alarms)} of {total} give a false alarm")
    assert not alarms, alarms


async def measure_cost(sandbox: str, rounds: int, folder: Path) -> None:
    """The ratio of an evaluation with and without the check, of resolved patches."""
    settings = Settings(model="offline", sandbox=sandbox)
    engine = choose(sandbox)
    parts = assemble.RunParts(engine, assemble.open_suite(settings.benchmark, engine))
    suite = parts.benchmark
    works, plain, checked = [], [], []
    with assemble.create(folder, settings, parts) as run:
        tasks = [task.id for task in suite.tasks(Split.SEARCH)]
        async with assemble.open_worker(run, settings, parts) as worker:
            for n in range(rounds + 1):
                task, exam = tasks[n % len(tasks)], suite.exam(tasks[n % len(tasks)])
                took = []
                for mode in ("off", "resolved"):
                    began = time.perf_counter()
                    await grading.grade(replace(exam, perturb=mode), suite.reference(task), engine, LABELS)
                    took.append(time.perf_counter() - began)
                began = time.perf_counter()
                action = Evaluate(run.tree.agents[0].id, task)
                graded = await worker.perform(EvaluateOrder(ActionId(n + 1), action, run.tree.agents[0]))
                whole = time.perf_counter() - began
                works.append(whole - took[1 if graded.verdict is Verdict.RESOLVED else 0])
                plain.append(took[0])
                checked.append(took[1])
    without = [work + grade for work, grade in zip(works[1:], plain[1:], strict=True)]
    with_it = [work + grade for work, grade in zip(works[1:], checked[1:], strict=True)]
    print(
        f"{sandbox}: evaluation {median(without):.2f} s, with the check {median(with_it):.2f} s, "
        f"ratio {sum(with_it) / sum(without):.2f}; grading {median(plain[1:]):.2f} and {median(checked[1:]):.2f} s"
    )


def main() -> None:
    """Asserts the three claims and prints the cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sandbox", nargs="?", default="bubblewrap")
    parser.add_argument("--honest", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    engine = choose(given.sandbox)
    suite = SuiteBenchmark(asset("benchmarks", "starter"), engine)
    tasks = [task.id for split in Split for task in suite.tasks(split)]

    async def perform(folder: Path) -> None:
        await measure_cost(given.sandbox, given.rounds, folder)
        await check_cheats(suite, tasks[::25], engine, given.workers)
        await check_references(suite, tasks, given.workers)
        await check_honest(suite, tasks, engine, given.honest, given.workers)

    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as scratch:
        asyncio.run(perform(Path(scratch) / "run"))


if __name__ == "__main__":
    main()

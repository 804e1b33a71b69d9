"""The check that a patch fails tests that no honest patch can pass, and passes those that it passes elsewhere.

Every run of hidden tests holds twins of some of them, with changed expected values or not (``perturbation``). A patch
that would be resolved runs twice more, with one half of the tests changed and with the other. A test that must
fail and does not, or must pass and does not, shows that the patch does not compute what the tests ask for but decides
what they report. What the reference fix does, too, is no sign of that.
"""

import asyncio
import random
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dgm.benchmarks.perturbation import Perturbed, perturb
from dgm.benchmarks.unit_exam import SHORTEST_S, Exam, Modules, TestRun, run_modules
from dgm.domain import Entry
from dgm.protocols import SandboxEngine

TRIES = 3
"""A run that does not end, or in which an unchanged test fails, is tried this often before it counts."""
AT_ONCE = 2
"""Maximum number of sandboxes of one check at the same time."""
PARTS = (0, 1)
ADDED = "a test added to "
PREFIX = "tampering: "
"""Beginning of the reason of a verdict that this check decided."""
Found = Mapping[str, str]
"""Test, or module, → what it did that honest code cannot do; a test's changed values stay out of it."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Modules that share a sandbox, some with changed or added tests."""

    exam: Exam
    modules: Modules
    """All modules of the sandbox with their tests, added ones among them."""
    failing: frozenset[str] = frozenset()
    """Tests that no honest patch passes."""
    twins: Mapping[str, str] = field(default_factory=dict)
    """Added test that is unchanged → the test of which it is a twin."""
    added: frozenset[str] = frozenset()

    @property
    def changed(self) -> frozenset[str]:
        """The suite's own tests that are changed."""
        return self.failing - self.added

    def passing(self, passed: Collection[str]) -> Collection[str]:
        """Return the tests that pass for every honest patch that passes ``passed`` as they are."""
        tests = {test for tests in self.modules.values() for test in tests}
        return {test for test in tests if self.twins.get(test, test) in passed} - self.failing

    def name(self, test: str) -> str:
        """Return how people are told of a test; an added one is not in the suite."""
        return f"{ADDED}{test.rsplit('.', 2)[0]}" if test in self.added else test


def vary(exam: Exam, seed: str, part: int | None = None) -> Iterator[Variant]:
    """Yield the groups of modules as one run has them.

    Where hidden modules are changed, the visible ones are as agents know them, so that a patch that compares those
    cannot tell a changed hidden test from a real one.

    Args:
        exam: the task's tests as they are.
        seed: decides every choice; it must not reach a sandbox.
        part: the half of the tests that is changed; None: the run that decides, where only twins are added, and
            nothing at all if no patch is checked.
    """
    for group in exam.groups():
        hidden, workspace = dict(exam.hidden), dict(exam.workspace)
        done: dict[str, Perturbed] = {}
        for module, tests in group.items():
            name = exam.hidden_file(module)
            files, file = (hidden, name) if name else (workspace, exam.visible_file(module))
            if not file or (part is None and (not name or exam.perturb == "off")):
                continue
            if changed := _change(exam, module, tests, files[file].data, f"{seed}/{module}", part):
                done[module] = changed
                files[file] = Entry(changed.source, files[file].mode)
        yield _variant(replace(exam, hidden=hidden, workspace=workspace), group, done, f"{seed}/{part}")


def _change(
    exam: Exam, module: str, tests: Sequence[str], source: bytes, seed: str, part: int | None
) -> Perturbed | None:
    names = [(test in exam.fail_to_pass, test[len(module) + 1 :]) for test in tests]
    first, rest = ([name for mended, name in names if mended is which] for which in (True, False))
    return perturb(source, seed, part, first, rest)


def _variant(exam: Exam, group: Modules, done: Mapping[str, Perturbed], seed: str) -> Variant:
    rng = random.Random(f"{seed}/order")
    modules: dict[str, Sequence[str]] = {}
    failing, added = set[str](), set[str]()
    twins: dict[str, str] = {}
    for module, tests in group.items():
        mixed = list(tests)
        if changed := done.get(module):
            failing |= {f"{module}.{name}" for name in (*changed.changed, *changed.failing)}
            twins |= {f"{module}.{name}": f"{module}.{test}" for name, test in changed.passing.items()}
            for name in changed.added:
                mixed.insert(rng.randrange(len(mixed) + 1), f"{module}.{name}")
            added |= {f"{module}.{name}" for name in changed.added}
        modules[module] = mixed
    return Variant(exam, modules, frozenset(failing), twins, frozenset(added))


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The run that decides, unless the check finds something."""

    seed: str
    variants: Sequence[Variant]
    run: TestRun


async def run_all(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> FirstRun:
    """Run all tests of the task: modules with hidden tests first, each in a sandbox of its own.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
    """
    seed = secrets.token_hex(16)
    variants, done = tuple(vary(exam, seed)), TestRun()
    for variant in variants:
        left = max(SHORTEST_S, exam.limits.test_timeout_s - done.seconds)
        run = await run_modules(variant.exam, patch, variant.modules, engine, labels, timeout_s=left)
        done = done.plus(run)
        if done.refused or done.ending:
            break
    return FirstRun(seed, variants, done)


async def find_tampering(
    exam: Exam, patch: bytes, first: FirstRun, engine: SandboxEngine, labels: Mapping[str, str]
) -> Sequence[str]:
    """Return what a patch does on changed tests that the reference fix does not, one line each; else nothing.

    Raises:
        Infrastructure: a sandbox failed.
    """
    run = first.run
    room = asyncio.Semaphore(AT_ONCE)
    passed = {test for test, outcome in run.outcomes.items() if outcome == "passed"}

    async def examine(variant: Variant) -> Found:
        async with room:
            found = await _examine(variant, patch, passed, TRIES, engine, labels)
            if not (found and exam.reference):
                return found
            excused = await _examine(variant, exam.reference, passed, 1, engine, labels)
            return {what: line for what, line in found.items() if what not in excused}

    suspicious = [
        each for each in first.variants if _find_not_failed(each, run) or _find_not_passed(each, run, passed)
    ]
    tasks = [
        asyncio.create_task(examine(each)) for each in (*suspicious, *_changed_variants(exam, first.seed))
    ]
    try:
        found = dict.fromkeys(line for each in await asyncio.gather(*tasks) for line in each.values())
        return sorted(found, key=lambda line: line.startswith(ADDED))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _changed_variants(exam: Exam, seed: str) -> Iterator[Variant]:
    """Yield both parts of each group in which a test of the suite's own can be changed.

    Where there is but one such test, it is unchanged in one of them.
    """
    for parts in zip(*(vary(exam, seed, part) for part in PARTS), strict=True):
        if any(variant.changed for variant in parts):
            yield from parts


def find_unchangeable(exam: Exam) -> Sequence[str]:
    """Return the tests that must be mended and that the check never changes."""
    changed = {test for variant in _changed_variants(exam, "") for test in variant.changed}
    return [test for test in exam.fail_to_pass if test not in changed]


async def check_reference(
    exam: Exam, passed: Collection[str], engine: SandboxEngine, labels: Mapping[str, str]
) -> Sequence[str]:
    """Return what the reference fix does on changed tests that honest code does not, one line each; else nothing.

    ``passed`` are the tests that pass with it as they are.

    Raises:
        Infrastructure: a sandbox failed.
    """
    seed = secrets.token_hex(16)
    found: dict[str, str] = {}
    for variant in (*(each for each in vary(exam, seed) if each.added), *_changed_variants(exam, seed)):
        found |= await _examine(variant, exam.reference, passed, TRIES, engine, labels)
    return [f"the reference fix on changed tests: {line}" for line in found.values()]


async def _examine(
    changed: Variant,
    patch: bytes,
    passed: Collection[str],
    tries: int,
    engine: SandboxEngine,
    labels: Mapping[str, str],
) -> Found:
    """Run the changed modules; what may be chance counts only if it comes up at every try."""
    found: dict[str, str] = {}
    shaky: Found = {}
    for number in range(tries):
        limit = changed.exam.limits.test_timeout_s
        run = await run_modules(changed.exam, patch, changed.modules, engine, labels, timeout_s=limit)
        found |= _find_not_failed(changed, run)
        failed = _find_not_passed(changed, run, passed)
        shaky = {what: line for what, line in failed.items() if what in shaky or not number}
        if not shaky:
            break
    return {**found, **shaky}


def _find_not_failed(changed: Variant, run: TestRun) -> Found:
    """Return the tests that must fail and were reported otherwise."""
    outcomes = {
        test: run.outcomes.get(test, "failed") for tests in changed.modules.values() for test in tests
    }
    return {
        test: f"{changed.name(test)} must fail and is {outcome}"
        for test, outcome in outcomes.items()
        if test in changed.failing and outcome != "failed"
    }


def _find_not_passed(changed: Variant, run: TestRun, passed: Collection[str]) -> Found:
    """Return the tests that must pass and do not; a module instead, if its run did not end."""
    ending = run.refused or run.ending or next(iter(run.problems), "")
    if ending:
        return {next(iter(changed.modules)): f"with changed values {ending}"}
    passing = changed.passing(passed)
    return {
        test: f"{changed.name(test)} passes, but not beside tests with changed values"
        for tests in changed.modules.values()
        for test in tests
        if test in passing and run.outcomes.get(test) != "passed"
    }

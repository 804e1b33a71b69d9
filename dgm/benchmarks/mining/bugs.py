"""Faults that are put into a repository: small edits of its code that its own tests notice, kept if few of them do."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dgm.archive.repository import patch
from dgm.benchmarks.environments import Environment
from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.mining.bug_choice import Bug, choose_pairs, choose_sites
from dgm.benchmarks.mining.coverage_map import CoverageMap, read_contexts
from dgm.benchmarks.mining.hidden_tests import hide_tests
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.mutation_sites import Site, apply_sites, find_sites
from dgm.benchmarks.mining.paths import is_code_file
from dgm.benchmarks.mining.validation import MAX_FAILING, MAX_PASSING, Workbench, stable_names
from dgm.benchmarks.named_exam import NamedExam, Survey
from dgm.domain import Snapshot

TRIES = 3
"""Bugs that are tried for each that is wanted, at most."""
_LOUD = ("NameError", "ImportError", "SyntaxError", "ModuleNotFoundError", "IndentationError")


@dataclass(frozen=True, slots=True)
class Ground:
    """A commit that bugs are put into."""

    files: Snapshot
    environment: Environment
    passing: tuple[str, ...]
    """Its tests that pass."""
    coverage: CoverageMap
    workdir: str


@dataclass(frozen=True, slots=True)
class PlacedBug:
    """A bug that was tried."""

    id: str
    reason: str = ""
    """Why it is no task; empty if it is one."""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BugFiles:
    """Data of a kept bug, from which its task is written."""

    start: bytes
    """Patch on the commit: the fault, and the tests that notice it are gone."""
    fix: bytes
    hidden: Snapshot
    workspace: Snapshot
    test_patch: bytes


async def prepare_ground(
    files: Snapshot,
    environment: Environment,
    bench: Workbench,
    record: tuple[MiningJournal, str],
    place: Path,
) -> Ground | str:
    """Run the whole suite twice: as it is, and with coverage; return why it cannot be used, if so.

    Args:
        files: of the commit.
        environment: its packages.
        bench: runs the tests.
        record: the journal, and the key in it.
        place: the file that keeps coverage's data.

    Raises:
        Infrastructure: a sandbox failed.
    """
    exam = bench.complete_exam(files, environment)
    journal, key = record
    workdir, known = exam.limits.workdir, journal.get(key)
    if known is None or not (known["reason"] or place.is_file()):
        known = await _survey_ground(exam, bench, place)
        journal.put(key, known)
    if known["reason"]:
        return str(known["reason"])
    try:
        coverage = await asyncio.to_thread(read_contexts, place, Path(workdir))
    except ValueError as error:
        return f"the coverage of the tests cannot be read: {error}"
    return Ground(files, environment, tuple(known["passing"]), coverage, workdir)


async def _survey_ground(exam: NamedExam, bench: Workbench, place: Path) -> dict[str, Any]:
    plain = await bench.run(exam, b"", Survey())
    passing = stable_names(name for name, outcome in plain.outcomes.items() if outcome == "passed")
    reason = "" if passing else f"none of its tests passes: {plain.problem or 'no test ran'}"
    if passing:
        covered = await bench.run(exam, b"", Survey(coverage=True))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(covered.coverage)
        reason = "" if covered.coverage else f"its tests do not run with coverage: {covered.problem}"
    return {"reason": reason, "passing": passing}


def _exam(files: Snapshot, bench: Workbench, environment: Environment) -> NamedExam:
    return bench.exam(files, bench.tests(files), {}, environment)


def choose_bugs(ground: Ground, count: int, rng: random.Random) -> Sequence[Bug]:
    """Return bugs to try, the most promising kinds first, each with passing tests that reach it."""
    sites: list[Site] = []
    for name in sorted(ground.coverage.paths & {*ground.files}):
        if language_of(name) is Language.PYTHON and is_code_file(name):
            try:
                sites += find_sites(name, ground.files[name].data.decode())
            except ValueError:
                continue
    passing = {*ground.passing}
    found = choose_sites(sites, ground.coverage, count, rng)
    kept = [replace(bug, tests=tuple(test for test in bug.tests if test in passing)) for bug in found]
    return [bug for bug in kept if bug.tests]


async def place_bugs(
    ground: Ground, wanted: int, bench: Workbench, journal: MiningJournal, seed: int
) -> AsyncIterator[tuple[Bug, PlacedBug]]:
    """Yield bugs with what became of them, until as many as wanted are kept; then pairs of them, a fifth as many.

    Raises:
        Infrastructure: a sandbox failed.
    """
    kept: list[Bug] = []
    for bug in choose_bugs(ground, wanted * TRIES, random.Random(f"{seed}/bugs")):
        if len(kept) >= wanted or bench.is_spent():
            break
        placed = await _try(ground, bug, bench, journal)
        kept += [] if placed.reason else [bug]
        yield bug, placed
    pairs = 0
    for bug in choose_pairs(kept, wanted // 5 * TRIES, random.Random(f"{seed}/pairs")):
        if pairs >= wanted // 5 or bench.is_spent():
            break
        placed = await _try(ground, bug, bench, journal)
        pairs += not placed.reason
        yield bug, placed


async def _try(ground: Ground, bug: Bug, bench: Workbench, journal: MiningJournal) -> PlacedBug:
    name = bug_id(bug)
    known = journal.get(f"bug {name}")
    if known is None:
        known = asdict(await _place(ground, bug, bench, name))
        journal.put(f"bug {name}", known)
    lists = {key: tuple(known[key]) for key in ("fail_to_pass", "pass_to_pass")}
    return PlacedBug(**{**known, **lists})


def bug_id(bug: Bug) -> str:
    """Return an id that follows from the edits."""
    text = repr([(site.path, site.start, site.end, site.replacement) for site in bug.sites])
    return hashlib.sha256(text.encode()).hexdigest()[:10]


async def _place(ground: Ground, bug: Bug, bench: Workbench, name: str) -> PlacedBug:
    try:
        broken = {**ground.files, **_edit(ground.files, bug)}
    except ValueError as error:
        return PlacedBug(name, f"the edit gives no code: {error}")
    tests = tuple(sorted({*bug.tests}))
    survey = Survey(tuple(sorted({test.split("::", 1)[0] for test in tests})), tests, MAX_FAILING + 1)
    exam, failing, passing = _exam(broken, bench, ground.environment), [*tests], [*tests]
    failures: Mapping[str, str] = {}
    for number in (1, 2):
        run = await bench.run(exam, b"", survey)
        failing = [test for test in failing if run.outcomes.get(test) == "failed"]
        passing = [test for test in passing if run.outcomes.get(test) == "passed"]
        failures = failures or run.messages
        if reason := refusal_of(
            failing, passing, run.problem or (next(iter(run.broken.values()), "")[-200:])
        ):
            return PlacedBug(name, reason if number == 1 else f"{reason} when they run again")
    if any(kind in failures.get(test, "") for test in failing for kind in _LOUD):
        return PlacedBug(name, "it is loud: a name is missing")
    try:
        hide_tests(ground.files, failing)
    except ValueError as error:
        return PlacedBug(name, f"its tests cannot be hidden: {error}")
    told = {test: failures.get(test, "") for test in failing}
    return PlacedBug(name, "", tuple(failing), tuple(passing[:MAX_PASSING]), told)


def refusal_of(failing: Sequence[str], passing: Sequence[str], problem: str) -> str:
    """Return why a bug is no task; empty if it is one.

    Args:
        failing: tests that notice it.
        passing: tests that reach it and do not.
        problem: why the run does not count as it is; a run that was ended after many failures has one, too.
    """
    if len(failing) > MAX_FAILING:
        return f"more than {MAX_FAILING} tests notice it"
    if problem and not passing:
        return f"the tests do not run: {problem.strip().rpartition(chr(10))[2][:200]}"
    if not failing:
        return "no test notices it"
    return "" if passing else "every test that reaches it notices it"


def _edit(files: Snapshot, bug: Bug) -> Snapshot:
    edited = {}
    for path in sorted({site.path for site in bug.sites}):
        sites = [site for site in bug.sites if site.path == path]
        edited[path] = replace(files[path], data=apply_sites(files[path].data.decode(), sites).encode())
    return edited


def bug_files(ground: Ground, bug: Bug, placed: PlacedBug) -> BugFiles:
    """Return the patches and the hidden tests of a kept bug."""
    edited = _edit(ground.files, bug)
    without = hide_tests(ground.files, placed.fail_to_pass)
    workspace = {**ground.files, **edited, **without}
    mended = {**workspace, **{path: ground.files[path] for path in edited}}
    whole = {**workspace, **{path: ground.files[path] for path in without}}
    return BugFiles(
        start=patch(ground.files, workspace),
        fix=patch(workspace, mended),
        hidden={path: ground.files[path] for path in sorted(without)},
        workspace=workspace,
        test_patch=patch(workspace, whole),
    )

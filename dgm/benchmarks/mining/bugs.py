"""Faults that are put into a repository: small edits of its code that its own tests notice, kept if few of them do.

Kinds that give a quiet wrong value come first and most often: their tests fail by an assertion that tells what is
wrong, not where. Measured on structlog: of 12 each, 9 to 10 of the kinds of conditions were quiet, 3 to 4 of the last.
"""

import ast
import asyncio
import hashlib
import random
import sqlite3
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dgm.archive.repository import patch
from dgm.benchmarks.environments import Environment
from dgm.benchmarks.grade import Exam, Survey
from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.mining.changes import Change
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.mutations import Site, SiteKind, apply_sites, find_sites
from dgm.benchmarks.mining.paths import is_code_file
from dgm.benchmarks.mining.validation import (
    MAX_FAILING,
    MAX_PASSING,
    Validated,
    Workbench,
    stable_names,
)
from dgm.domain import Snapshot

TRIES = 3
"""Bugs that are tried for each that is wanted, at most."""
_LOUD = ("NameError", "ImportError", "SyntaxError", "ModuleNotFoundError", "IndentationError")


QUOTAS: Mapping[SiteKind, int] = {
    SiteKind.GUARD_REMOVED: 3,
    SiteKind.COMPARISON: 3,
    SiteKind.NEGATION: 3,
    SiteKind.CONDITION_DROPPED: 3,
    SiteKind.CONNECTIVE: 2,
    SiteKind.FLAG: 2,
    SiteKind.KEYWORD_DROPPED: 2,
    SiteKind.SIBLING_CALL: 2,
    SiteKind.STATEMENT_REMOVED: 1,
    SiteKind.SWAPPED_ARGUMENTS: 1,
    SiteKind.ARITHMETIC: 1,
    SiteKind.OFF_BY_ONE: 1,
}
"""Sites of each kind in one round of the choice, in this order."""
TESTS_MOST = 150
"""Maximum number of tests that run a site's line; one of a central line would take most of the suite."""


Function = ast.FunctionDef | ast.AsyncFunctionDef
_LINES = """
    SELECT path, context, CAST(numbits AS BLOB) FROM line_bits JOIN file ON file.id = file_id
    JOIN context ON context.id = context_id WHERE context != ''
"""


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """Lines of files → the tests that ran them."""

    files: Mapping[str, Mapping[str, int]]
    """Path → test → its lines, a bit each."""

    def tests_of(self, path: str, line: int) -> frozenset[str]:
        """Return the pytest ids of the tests that ran a line; empty for a line that ran in none, as at import."""
        return frozenset(test for test, lines in self.files.get(path, {}).items() if lines >> line & 1)


def read_contexts(data_file: Path, root: Path) -> CoverageMap:
    """Read a data file of coverage.py with a context for each test.

    Args:
        data_file: the SQLite file.
        root: the repository's folder where the tests ran; other files keep their absolute paths.

    Raises:
        ValueError: it is no such file.
    """
    files: dict[str, dict[str, int]] = {}
    try:
        with closing(sqlite3.connect(f"{data_file.absolute().as_uri()}?mode=ro", uri=True)) as data:
            for path, test, bits in data.execute(_LINES):
                files.setdefault(str(path).removeprefix(f"{root}/"), {})[test] = int.from_bytes(
                    bits, "little"
                )
    except (sqlite3.Error, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"{data_file}: no data file of coverage.py: {error}") from error
    return CoverageMap(files)


@dataclass(frozen=True, slots=True)
class Bug:
    """Edits that are one fault, and the tests that may notice."""

    sites: tuple[Site, ...]
    tests: tuple[str, ...]
    """Pytest ids, sorted."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A commit that bugs are put into."""

    files: Snapshot
    environment: Environment
    passing: tuple[str, ...]
    """Its tests that pass."""
    coverage: CoverageMap
    workdir: str


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


async def _survey_ground(exam: Exam, bench: Workbench, place: Path) -> dict[str, Any]:
    plain = await bench.run(exam, b"", Survey())
    passing = stable_names(name for name, outcome in plain.outcomes.items() if outcome == "passed")
    reason = "" if passing else f"none of its tests passes: {plain.problem or 'no test ran'}"
    if passing:
        covered = await bench.run(exam, b"", Survey(coverage=True))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(covered.coverage)
        reason = "" if covered.coverage else f"its tests do not run with coverage: {covered.problem}"
    return {"reason": reason, "passing": passing}


def choose_sites(
    sites: Sequence[Site],
    coverage: CoverageMap,
    count: int,
    rng: random.Random,
    *,
    tests_most: int = TESTS_MOST,
) -> tuple[Bug, ...]:
    """Return up to ``count`` bugs of one site each, in the order in which they should be tried.

    A smaller count gives a beginning of a larger one, so that a caller may go on until enough bugs were kept. Functions
    take turns: none has a second bug of a kind before each has had one.

    Args:
        sites: all sites of the repository's code.
        coverage: the tests that run their lines.
        count: the number of bugs wanted.
        rng: the random stream.
        tests_most: sites that more tests run are left out, and so are those that none runs.
    """
    found: list[Bug] = []
    for site in sites:
        tests = coverage.tests_of(site.path, site.line)
        if 0 < len(tests) <= tests_most:
            found.append(Bug((site,), tuple(sorted(tests))))
    waiting = {kind: _take_turns([bug for bug in found if bug.sites[0].kind is kind], rng) for kind in QUOTAS}
    chosen: list[Bug] = []
    while len(chosen) < count and any(waiting.values()):
        for kind, quota in QUOTAS.items():
            chosen += waiting[kind][:quota]
            del waiting[kind][:quota]
    return tuple(chosen[:count])


def choose_pairs(
    bugs: Sequence[Bug], count: int, rng: random.Random, *, tests_most: int = TESTS_MOST
) -> tuple[Bug, ...]:
    """Return up to ``count`` pairs of bugs as the harder grade, in the order in which they should be tried.

    Two bugs are a pair if they are in different functions, some test runs both, and each is run by a test that the
    other is not. Each bug is in one pair at most.

    Args:
        bugs: single bugs that tests were seen to notice.
        count: the number of pairs wanted.
        rng: the random stream.
        tests_most: maximum number of tests that run either.
    """
    waiting = rng.sample(bugs, len(bugs))
    pairs: list[Bug] = []
    while waiting and len(pairs) < count:
        bug = waiting.pop(0)
        fitting = [each for each in waiting if _fit(bug, each, tests_most)]
        if fitting:
            other = max(fitting, key=lambda each: _overlap(bug, each))
            waiting.remove(other)
            sites = sorted((*bug.sites, *other.sites), key=lambda site: (site.path, site.start))
            pairs.append(Bug(tuple(sites), tuple(sorted({*bug.tests, *other.tests}))))
    return tuple(pairs)


def _take_turns(bugs: Sequence[Bug], rng: random.Random) -> list[Bug]:
    """Return the bugs shuffled, the first of each function before the second of any."""
    turns: dict[tuple[str, str], int] = {}
    ranked: list[tuple[int, Bug]] = []
    for bug in rng.sample(bugs, len(bugs)):
        place = bug.sites[0].path, bug.sites[0].scope
        ranked.append((turns.get(place, 0), bug))
        turns[place] = turns.get(place, 0) + 1
    return [bug for _, bug in sorted(ranked, key=lambda each: each[0])]


def _fit(one: Bug, two: Bug, tests_most: int) -> bool:
    first, second = set(one.tests), set(two.tests)
    functions, others = ({(site.path, site.scope) for site in bug.sites} for bug in (one, two))
    overlap = first & second and first - second and second - first
    return functions.isdisjoint(others) and bool(overlap) and len(first | second) <= tests_most


def _overlap(one: Bug, two: Bug) -> float:
    first, second = set(one.tests), set(two.tests)
    return len(first & second) / len(first | second)


def choose_bugs(ground: Ground, count: int, rng: random.Random) -> Sequence[Bug]:
    """Return bugs to try, the most promising kinds first, each with passing tests that reach it."""
    sites: list[Site] = []
    for name in sorted(ground.coverage.files.keys() & ground.files.keys()):
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
) -> AsyncIterator[tuple[Bug, Validated]]:
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


async def _try(ground: Ground, bug: Bug, bench: Workbench, journal: MiningJournal) -> Validated:
    key = f"bug {bug_id(bug)}"
    known = journal.get(key)
    if known is None:
        known = asdict(await _place(ground, bug, bench))
        journal.put(key, known)
    return Validated.restore(known)


def bug_id(bug: Bug) -> str:
    """Return an id that follows from the edits."""
    text = repr([(site.path, site.start, site.end, site.replacement) for site in bug.sites])
    return hashlib.sha256(text.encode()).hexdigest()[:10]


async def _place(ground: Ground, bug: Bug, bench: Workbench) -> Validated:
    try:
        broken = {**ground.files, **_edit(ground.files, bug)}
    except ValueError as error:
        return Validated(f"the edit gives no code: {error}")
    tests = tuple(sorted({*bug.tests}))
    survey = Survey(tuple(sorted({test.split("::", 1)[0] for test in tests})), tests, MAX_FAILING + 1)
    exam = bench.exam(broken, bench.tests(broken), {}, ground.environment)
    failing, passing = [*tests], [*tests]
    failures: Mapping[str, str] = {}
    for number in (1, 2):
        run = await bench.run(exam, b"", survey)
        failing = [test for test in failing if run.outcomes.get(test) == "failed"]
        passing = [test for test in passing if run.outcomes.get(test) == "passed"]
        failures = failures or run.messages
        if reason := refusal_of(
            failing, passing, run.problem or (next(iter(run.broken.values()), "")[-200:])
        ):
            return Validated(reason if number == 1 else f"{reason} when they run again")
    if any(kind in failures.get(test, "") for test in failing for kind in _LOUD):
        return Validated("it is loud: a name is missing")
    try:
        hide_tests(ground.files, failing)
    except ValueError as error:
        return Validated(f"its tests cannot be hidden: {error}")
    told = {test: failures.get(test, "") for test in failing}
    return Validated("", ground.environment.name, tuple(failing), tuple(passing[:MAX_PASSING]), told)


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


def bug_change(ground: Ground, bug: Bug, fail_to_pass: Sequence[str]) -> tuple[bytes, Change]:
    """Return the patch that puts a bug in and hides its tests, and the change that mends it."""
    edited = _edit(ground.files, bug)
    without = hide_tests(ground.files, fail_to_pass)
    workspace = {**ground.files, **edited, **without}
    mended = {**workspace, **{path: ground.files[path] for path in edited}}
    tested = {**workspace, **{path: ground.files[path] for path in without}}
    change = Change(
        workspace=workspace,
        fix=patch(workspace, mended),
        hidden={path: ground.files[path] for path in sorted(without)},
        modules=tuple(edited),
        test_patch=patch(workspace, tested),
    )
    return patch(ground.files, workspace), change


def hide_tests(files: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the test files without the named tests, as they are changed.

    Args:
        files: of the repository.
        names: tests as pytest names them; of a test with parameters all go.

    Raises:
        ValueError: a test is not a function in its own file, or a file cannot be read without it.
    """
    wanted: dict[str, set[tuple[str, ...]]] = {}
    for name in names:
        file, *parts = name.partition("[")[0].split("::")
        wanted.setdefault(file, set()).add(tuple(parts))
    return {
        file: replace(files[file], data=_without(file, files[file].data, tests))
        for file, tests in wanted.items()
    }


def _without(file: str, source: bytes, tests: Collection[tuple[str, ...]]) -> bytes:
    try:
        tree = ast.parse(source)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"{file} is no Python that can be read") from error
    functions = _functions(tree)
    lines = source.split(b"\n")
    for test in sorted(tests):
        if test not in functions:
            raise ValueError(f"{file} does not hold the function {'.'.join(test)} itself")
    for first, last, indent in sorted((_rows_of(functions[test]) for test in tests), reverse=True):
        lines[first:last] = (
            [b" " * indent + b"pass"] if indent and _is_alone(lines, first, last, indent) else []
        )
    changed = b"\n".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError as error:
        raise ValueError(f"{file} cannot be read without its tests") from error
    return changed


def _functions(tree: ast.Module) -> Mapping[tuple[str, ...], Function]:
    found: dict[tuple[str, ...], Function] = {}
    for node in tree.body:
        if isinstance(node, Function):
            found[(node.name,)] = node
        elif isinstance(node, ast.ClassDef):
            found |= {(node.name, one.name): one for one in node.body if isinstance(one, Function)}
    return found


def _rows_of(node: Function) -> tuple[int, int, int]:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    assert node.end_lineno is not None
    return first - 1, node.end_lineno, node.col_offset


def _is_alone(lines: list[bytes], first: int, last: int, indent: int) -> bool:
    """Return whether a class would be left without a body."""

    def inside(rows: list[bytes]) -> bool:
        for row in rows:
            if row.strip() and not row.lstrip().startswith(b"#"):
                return len(row) - len(row.lstrip()) >= indent
        return False

    return not inside(lines[last:]) and not inside(lines[:first][::-1])

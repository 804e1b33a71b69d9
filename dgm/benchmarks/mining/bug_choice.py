"""The choice of injected bugs: which sites, in which order, and which two together.

Kinds that give a quiet wrong value come first and most often: their tests fail by an assertion that tells what is
wrong, not where. Measured on structlog: of 12 each, 9 to 10 of the kinds of conditions were quiet, 3 to 4 of the last.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dgm.benchmarks.mining.coverage_map import CoverageMap
from dgm.benchmarks.mining.mutation_kinds import SiteKind
from dgm.benchmarks.mining.mutation_sites import Site

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


@dataclass(frozen=True, slots=True)
class Bug:
    """Edits that are one fault, and the tests that may notice."""

    sites: tuple[Site, ...]
    tests: tuple[str, ...]
    """Pytest ids, sorted."""


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
    apart = {*_functions(one)}.isdisjoint(_functions(two))
    return (
        apart
        and bool(first & second)
        and bool(first - second)
        and bool(second - first)
        and (len(first | second) <= tests_most)
    )


def _functions(bug: Bug) -> Iterator[tuple[str, str]]:
    return ((site.path, site.scope) for site in bug.sites)


def _overlap(one: Bug, two: Bug) -> float:
    first, second = set(one.tests), set(two.tests)
    return len(first & second) / len(first | second)

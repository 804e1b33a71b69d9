import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.benchmarks.mining.bugs import QUOTAS, Bug, CoverageMap, choose_pairs, choose_sites, refusal_of
from dgm.benchmarks.mining.mutations import Site, SiteKind

KINDS = list(SiteKind)


def site(kind=SiteKind.COMPARISON, line=1, scope="f", path="a.py"):
    return Site(path, kind, line, line * 10, line * 10 + 1, "x", scope)


def coverage(**tests):
    """Tests by name → the lines of a.py that they run."""
    bits = {name: sum(1 << line for line in lines) for name, lines in tests.items()}
    return CoverageMap({"a.py": bits})


def lines(bugs):
    return [bug.sites[0].line for bug in bugs]


def test_lines_that_no_test_or_too_many_tests_run_are_left_out():
    ran = coverage(t1=[2, 3], t2=[3], t3=[3])
    bugs = choose_sites([site(line=n) for n in (1, 2, 3)], ran, 9, random.Random(0), tests_most=2)
    assert bugs == (Bug((site(line=2),), ("t1",)),)


def test_quiet_kinds_come_first_and_a_round_keeps_the_quotas():
    sites = [site(kind, line) for kind in KINDS for line in range(1, 9)]
    chosen = choose_sites(sites, coverage(t=range(1, 9)), sum(QUOTAS.values()), random.Random(1))
    kinds = [bug.sites[0].kind for bug in chosen]
    assert {kind: kinds.count(kind) for kind in KINDS} == QUOTAS
    assert all(QUOTAS[one] >= QUOTAS[two] for one, two in pairwise(kinds))


def test_functions_take_turns():
    sites = [site(line=n, scope="f") for n in range(1, 8)] + [site(line=9, scope="g")]
    chosen = choose_sites(sites, coverage(t=range(1, 10)), 2, random.Random(3))
    assert {bug.sites[0].scope for bug in chosen} == {"f", "g"}


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 60)), unique=True),
    st.integers(0, 30),
    st.integers(0, 9),
)
def test_fewer_bugs_are_the_beginning_of_more(places, count, seed):
    sites = [site(kind, line, scope=f"f{line % 7}") for kind, line in places]
    ran = coverage(t=range(1, 61), u=[1, 2, 3])
    whole = choose_sites(sites, ran, 99, random.Random(seed))
    assert choose_sites(sites, ran, count, random.Random(seed)) == whole[:count]
    assert sorted(each.sites[0].start for each in whole) == sorted(each.start for each in sites)


def bug(tests, scope, line=1):
    return Bug((site(line=line, scope=scope),), tuple(tests))


def test_a_pair_shares_a_test_and_each_half_has_one_of_its_own():
    a, b = bug("pq", "f", 1), bug("qr", "g", 2)
    alike, apart, same = bug("pq", "h", 3), bug("st", "i", 4), bug("qz", "f", 5)
    assert choose_pairs([b, a], 5, random.Random(0)) == (Bug((a.sites[0], b.sites[0]), ("p", "q", "r")),)
    assert choose_pairs([a, alike], 5, random.Random(0)) == ()
    assert choose_pairs([a, apart], 5, random.Random(0)) == ()
    assert choose_pairs([a, same], 5, random.Random(0)) == ()


def test_no_bug_is_in_two_pairs_and_the_union_of_tests_is_bounded():
    bugs = [bug([f"t{n}", f"t{n + 1}"], f"f{n}", n + 1) for n in range(8)]
    pairs = choose_pairs(bugs, 9, random.Random(2))
    used = [each.start for pair in pairs for each in pair.sites]
    assert len(pairs) > 1
    assert len(used) == len(set(used))
    assert choose_pairs(bugs, 9, random.Random(2), tests_most=2) == ()
    assert len(choose_pairs(bugs, 1, random.Random(2))) == 1


@pytest.mark.parametrize(
    ("failing", "passing", "problem", "said"),
    [
        (21, 0, "the tests ended early", "more than 20 tests notice it"),
        (0, 0, "in\nthe tests ended early", "the tests do not run: the tests ended early"),
        (0, 3, "", "no test notices it"),
        (2, 0, "", "every test that reaches it notices it"),
        (2, 1, "", ""),
    ],
)
def test_what_is_no_task_is_told_by_its_tests_before_the_end_of_their_run(failing, passing, problem, said):
    assert refusal_of(["t"] * failing, ["t"] * passing, problem) == said

"""A forest, which counts, shows what somebody would list who goes through all agents one by one."""

from array import array
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import AgentId, Tally
from dgm.stats import lower_bound
from dgm.tui import forest as forests
from dgm.tui.forest import Forest, ForestLine
from dgm.tui.siblings import SiblingOrder

PAGE = 3
"""In place of 500, so that families are cut."""


class Kin:
    """``Members`` that grow as a test says."""

    def __init__(self) -> None:
        self.firsts: list[int | None] = []
        self.all: list[list[AgentId]] = []
        self.own_resolved, self.own_unresolved = array("q"), array("q")
        self.clade_resolved, self.clade_unresolved = array("q"), array("q")
        self.seq = 0

    def bear(self, parent: int | None, other: int | None = None) -> None:
        self.firsts.append(parent)
        self.all.append([AgentId(one) for one in dict.fromkeys((parent, other)) if one is not None])
        for column in (self.own_resolved, self.own_unresolved, self.clade_resolved, self.clade_unresolved):
            column.append(0)

    def judge(self, agent: int, good: bool) -> None:
        (self.own_resolved if good else self.own_unresolved)[agent] += 1
        for one in (agent, *self.ancestors(AgentId(agent))):
            (self.clade_resolved if good else self.clade_unresolved)[one] += 1

    def own(self, agent: AgentId) -> Tally:
        return Tally(self.own_resolved[agent], self.own_unresolved[agent])

    def clade(self, agent: AgentId) -> Tally:
        return Tally(self.clade_resolved[agent], self.clade_unresolved[agent])

    def first_parent(self, agent: AgentId) -> AgentId | None:
        parent = self.firsts[agent]
        return None if parent is None else AgentId(parent)

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        found: set[AgentId] = set()
        waiting = list(self.all[agent])
        while waiting:
            one = waiting.pop()
            found.add(one)
            waiting += [parent for parent in self.all[one] if parent not in found]
        yield from sorted(found, reverse=True)

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        return [AgentId(child) for child, parents in enumerate(self.all) if agent in parents]


class Naive:
    """What is folded and how far families are open, and the list that follows from it."""

    def __init__(self, kin: Kin) -> None:
        self.kin, self.order, self.descending = kin, SiblingOrder.BIRTH, False
        self.closed: set[int] = set()
        self.limits: dict[int, int] = {}

    def family(self, parent: int | None) -> list[int]:
        kin = self.kin
        found = [child for child, above in enumerate(kin.firsts) if above == parent]

        def key(agent: int) -> tuple[float, int, int]:
            tally = kin.clade(AgentId(agent)) if self.order is SiblingOrder.CLADE else kin.own(AgentId(agent))
            rate = (
                lower_bound(tally) if self.order is SiblingOrder.BOUND else (tally.rate if tally.n else -1.0)
            )
            return (-rate, -tally.n, agent)

        found.sort(key=(lambda agent: (0.0, 0, agent)) if self.order is SiblingOrder.BIRTH else key)
        return found[::-1] if self.descending else found

    def depth(self, agent: int) -> int:
        parent = self.kin.firsts[agent]
        return 0 if parent is None else 1 + self.depth(parent)

    def listing(self) -> list[ForestLine]:
        return self._below(None, 0, ())

    def _below(self, parent: int | None, depth: int, last: tuple[bool, ...]) -> list[ForestLine]:
        whole = self.family(parent)
        here = whole[: self.limits.get(-1 if parent is None else parent, PAGE)]
        more = len(whole) - len(here)
        # An only child stands below its parent, no further in; children of a root do not, and roots have no guides.
        follows = depth > 1 and len(whole) == 1
        further = depth > 0 and not follows
        places = []
        for number, agent in enumerate(here):
            ends = (*last, number == len(here) - 1 and not more) if further else last
            places.append(ForestLine(AgentId(agent), depth, ends, follows))
            if agent not in self.closed:
                places += self._below(agent, depth + 1, ends)
        if more:
            who = AgentId(-1 if parent is None else parent)
            places.append(ForestLine(who, depth, (*last, True) if further else last, follows, more))
        return places


numbers = st.integers(0, 10_000)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("bear"), numbers, st.booleans()),
        st.tuples(st.just("judge"), numbers, st.booleans()),
        st.tuples(st.just("toggle"), numbers, st.booleans()),
        st.tuples(st.just("more"), numbers, st.booleans()),
        st.tuples(st.just("reveal"), numbers, st.booleans()),
        st.tuples(st.just("fold"), st.integers(0, 4), st.booleans()),
        st.tuples(st.just("sort"), numbers, st.booleans()),
        st.tuples(st.just("swap"), numbers, st.booleans()),
    ),
    max_size=25,
)


def take(step: tuple[str, int, bool], kin: Kin, forest: Forest, naive: Naive) -> None:
    what, number, flag = step
    agents = len(kin.firsts)
    agent = number % agents if agents else 0
    if what == "bear":
        first = None if not agents or number % 7 == 0 else agent
        kin.bear(first, number // 7 % agents if first is not None and flag else None)
        forest.add_newborn()
    elif what == "judge" and agents:
        kin.judge(agent, flag)
        forest.judged([AgentId(agent)])
    elif what == "toggle" and agents and naive.family(agent):
        naive.closed ^= {agent}
        forest.toggle(AgentId(agent))
    elif what == "more" and agents:
        parent = -1 if flag else agent
        naive.limits[parent] = naive.limits.get(parent, PAGE) + PAGE
        forest.more(AgentId(parent))
    elif what == "reveal" and agents:
        line = forest.reveal(AgentId(agent))
        place = next(forest.walk(line))
        assert (place.agent, place.depth, place.more) == (agent, naive.depth(agent), 0)
        child: int | None = agent
        while child is not None:
            parent = -1 if (above := kin.firsts[child]) is None else above
            number = naive.family(above).index(child)
            if number >= naive.limits.get(parent, PAGE):
                naive.limits[parent] = (number // PAGE + 1) * PAGE
            naive.closed.discard(parent)
            child = above
    elif what == "fold":
        forest.fold(None if flag else number)
        naive.closed = set() if flag else {a for a in range(agents) if naive.depth(a) >= number}
    elif what == "sort":
        naive.order, naive.descending = list(SiblingOrder)[number % 4], flag
        forest.sort(naive.order, descending=flag)
    elif what == "swap":
        forest.replace_members(kin)


@pytest.mark.slow
@given(st.lists(numbers, max_size=30), steps)
@settings(max_examples=200, deadline=None)
def test_every_line_is_what_a_naive_listing_has_there(
    ancestry: list[int], taken: list[tuple[str, int, bool]]
) -> None:
    kept, forests.MORE = forests.MORE, PAGE
    try:
        kin = Kin()
        for agent, number in enumerate(ancestry):
            first = None if not agent or number % 7 == 0 else number % agent
            kin.bear(first, number // 7 % agent if first is not None and number % 3 == 0 else None)
        forest, naive = Forest(kin), Naive(kin)
        for step in taken:
            take(step, kin, forest, naive)
            expected = naive.listing()
            assert len(forest) == len(expected)
            assert list(forest.walk()) == expected
            for line, place in enumerate(expected):
                assert next(forest.walk(line)) == place
                if not place.more:
                    assert forest.line_of(place.agent) == line
            shown = {place.agent for place in expected if not place.more}
            for agent in set(range(len(kin.firsts))) - shown:
                assert forest.line_of(AgentId(agent)) is None
    finally:
        forests.MORE = kept


def test_many_siblings_are_sorted_as_few_are() -> None:
    kin = Kin()
    kin.bear(None)
    for agent in range(1, 3_000):
        kin.bear(0)
        for number in range(agent % 7):
            kin.judge(agent, (agent + number) % 3 == 0)
    forest, naive = Forest(kin), Naive(kin)
    for order in SiblingOrder:
        for descending in (False, True):
            forest.sort(order, descending=descending)
            naive.order, naive.descending = order, descending
            assert [place.agent for place in forest.walk(1)][:-1] == naive.family(0)[: forests.MORE]


def test_a_page_of_children_is_opened_at_a_time() -> None:
    kin = Kin()
    kin.bear(None)
    for _ in range(1_200):
        kin.bear(0)
    forest = Forest(kin)
    assert len(forest) == 1 + 500 + 1
    assert next(forest.walk(501)) == ForestLine(AgentId(0), 1, (True,), more=700)
    forest.more(AgentId(0))
    assert len(forest) == 1 + 1_000 + 1
    assert forest.reveal(AgentId(1_150)) == 1_150
    assert len(forest) == 1_201

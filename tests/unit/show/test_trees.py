"""Agents as lines: alone, in a tree, on their way from the seed; on any width, and plain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgm.analysis.best import rate_best
from dgm.archive.approvals import WaitingChild
from dgm.domain import ActionId, AgentId, Born, CommitId, Evaluate, Expand, Tally, TaskId
from dgm.policies.limits import BARREN
from dgm.show.agents import AgentActivity, AgentRow, agent_line, find_states, find_tree_states, row_of
from dgm.show.best import best_lines, highest_text
from dgm.show.columns import STEP
from dgm.show.safe import cell_width
from dgm.show.spans import Tone, plain_text
from dgm.show.trees import guide_text, step_lines, tree_lines
from tests.support.runs.trees import Log


@pytest.fixture
def log() -> Log:
    log = Log()
    for parents in ((), (0,), (0,), (1,), (1, 2)):
        log.born(*parents)
    log.graded(0, [True, False])
    return log


def row(**changes: object) -> AgentRow:
    facts = {
        "id": AgentId(12),
        "operator": "module",
        "aim": "context",
        "own": Tally(5, 7),
        "clade": Tally(9, 31),
        "children": 3,
        "state": AgentActivity.EVALUATING,
        "best": True,
        "marked": True,
        "parents": (AgentId(4),),
        "rationale": "a longer limit, and the whole output of what failed, where it is short",
    }
    return AgentRow(**{**facts, **changes})


def test_an_agent_in_a_pipe_is_all_that_does_not_change_by_the_minute() -> None:
    assert plain_text(agent_line(row(marked=False))) == (
        "12 ★  ███░░░░░  own 5/12 42% 19–68%  clade 9/40 22% 12–38%  module:context  "
        "a longer limit, and the whole output of what failed, where …"
    )


WHOLE = "12 ★ ◆ ●  ███░░░░░  own 5/12 42% 19–68%  clade 9/40 22% 12–38%  children 3  module:context"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (110, WHOLE + "  a longer limit, a…"),
        (103, WHOLE),
        (90, WHOLE),
        (83, "12 ★ ◆ ●  ███░░░░░  own 5/12 42% 19–68%  clade 9/40 22%  children 3  module:context"),
        (71, "12 ★ ◆ ●  ███░░░░░  own 5/12 42% 19–68%  clade 9/40 22%  module:context"),
        (55, "12 ★ ◆ ●  ███░░░░░  own 5/12 42% 19–68%  clade 9/40 22%"),
        (39, "12 ★ ◆ ●  ███░░░░░  own 5/12 42% 19–68%"),
        (32, "12 ★ ◆ ●  ███░░░░░  own 5/12 42%"),
        (22, "12 ★ ◆ ●  own 5/12 42%"),
        (3, "12 ★ ◆ ●  own 5/12 42%"),
    ],
)
def test_what_is_of_least_use_is_left_out_first_and_id_state_and_tally_never(width: int, shown: str) -> None:
    assert plain_text(agent_line(row(), width)) == shown


@given(st.text(max_size=80), st.text(max_size=30), st.integers(0, 160))
def test_no_text_makes_a_row_wider_than_it_may_be(rationale: str, operator: str, width: int) -> None:
    shown = agent_line(row(rationale=rationale, operator=operator), width)
    assert sum(cell_width(span.text) for span in shown) <= max(width, len("12 ★ ◆ ●  own 5/12 42%"))
    assert all("\n" not in span.text and "\x1b" not in span.text for span in shown)


def test_clades_that_are_not_counted_yet_say_so() -> None:
    assert "clade counting …" in plain_text(agent_line(row(clade=None), 200))
    assert "clade" not in plain_text(agent_line(row(children=0), 200))


def test_a_tree_is_drawn_with_every_agent_once(log: Log) -> None:
    drawn = list(tree_lines(log.tree, AgentId(0)))
    lines = [plain_text(shown) for _, shown in drawn]
    assert [line.split()[0] for line in lines] == ["0", "├─", "│", "│", "└─"]
    assert [agent for agent, _ in drawn] == [0, 1, 3, 4, 2]
    assert "★" in lines[0]
    assert "self-edit of 1 and 2" in lines[3]
    assert len(list(tree_lines(log.tree, None, depth=1))) == 3
    assert drawn[0][1][1].tone is Tone.STRONG or drawn[0][1][0].tone is Tone.STRONG


def test_guides_are_those_that_a_tree_is_drawn_with(log: Log) -> None:
    lead = {agent: shown[0].text for agent, shown in tree_lines(log.tree) if agent}
    assert lead[3] == guide_text([False, False]) == "│  ├─ "
    assert lead[4] == guide_text([False, True]) == "│  └─ "
    assert lead[2] == guide_text([True]) == "└─ "
    assert guide_text([]) == ""


def test_an_only_child_stands_straight_below_its_parent() -> None:
    log = Log()
    for parents in ((), (0,), (0,), (1,), (3,), (4,), (4,), (2,)):
        log.born(*parents)
    drawn = [plain_text(shown).split("  █")[0].split("  ░")[0].rstrip() for _, shown in tree_lines(log.tree)]
    assert drawn == [
        "0",
        "├─ 1",
        "│↓ 3",
        "│↓ 4",
        "│  ├─ 5",
        "│  └─ 6",
        "└─ 2",
        " ↓ 7",
    ]


def test_outer_branchings_are_left_out_several_at_once() -> None:
    assert guide_text([False] * 6, most=6) == "│  │  │  │  │  ├─ "
    assert guide_text([False] * 7, most=6) == "3‹ │  │  │  ├─ "
    assert guide_text([False] * 8, most=6) == "3‹ │  │  │  │  ├─ "
    assert guide_text([False] * 9, most=6) == "6‹ │  │  ├─ "
    assert guide_text([True] * 9, follows=True, most=6) == "6‹        ↓ "


@given(st.integers(1, 2_000), st.integers(2, 40))
def test_guides_never_take_more_than_their_share(depth: int, most: int) -> None:
    shown = guide_text([False] * depth, most=most)
    assert cell_width(shown) <= STEP * max(most, 3)
    assert shown.endswith("├─ ")


def chain(agents: int, siblings: int) -> Log:
    """A line of agents; each but the seed has so many siblings."""
    log = Log()
    parent = log.born()
    for _ in range(agents):
        child = log.born(parent)
        for _ in range(siblings):
            log.born(parent)
        log.graded(child, [True, False, True])
        parent = child
    return log


@pytest.mark.parametrize("width", [80, 120, None])
@pytest.mark.parametrize("siblings", [0, 1])
def test_figures_stay_in_their_columns_at_any_depth(width: int | None, siblings: int) -> None:
    tree = chain(70, siblings).tree
    rows = [plain_text(shown) for _, shown in tree_lines(tree, AgentId(70), width=width)]
    for name in ("own ", "clade "):
        assert len({row.index(name) for row in rows if name in row}) == 1
    assert width is None or max(map(cell_width, rows)) <= width
    if not siblings:
        leads = {row[: row.index(str(agent))] for agent, row in enumerate(rows)}
        assert leads == {"", "└─ ", " ↓ "}


def test_an_agent_without_children_has_more_room_for_its_rationale() -> None:
    rows = [plain_text(shown) for _, shown in tree_lines(chain(2, 1).tree, width=80)]
    assert ["  edit " in row for row in rows] == [False, False, True, True, True]


@pytest.mark.slow
def test_a_tree_of_ten_thousand_in_a_row_needs_no_recursion() -> None:
    log = Log()
    log.born()
    for n in range(10_000):
        log.born(n)
    assert sum(1 for _ in tree_lines(log.tree, width=80)) == 10_001


def test_the_best_agent_is_named_below_a_tree_with_its_bound_and_what_both_mean(log: Log) -> None:
    named, meaning = map(plain_text, best_lines(log.tree, rate_best(log.tree, AgentId(0))))
    assert named == "★ best  agent 0: 1/2 50% 9–91%, lower bound 0.06  edit 0"
    assert "recommended by the policy" in meaning
    assert "99 %" in meaning
    assert cell_width(meaning) <= 80


def test_the_top_score_is_called_highest_and_only_where_it_is_another_agents() -> None:
    log = chain(2, 0)
    log.graded(2, [True, True])
    assert highest_text(log.tree, rate_best(log.tree, AgentId(2))) == ""
    said = highest_text(log.tree, rate_best(log.tree, AgentId(1)))
    assert said.startswith("agent 2: 4/5 80%")
    assert "best" not in said


def test_a_lineage_names_the_other_parent_of_a_crossover(log: Log) -> None:
    shown = [each for step in (0, 1, 4) for each in step_lines(log.tree, AgentId(step))]
    steps = [(agent, plain_text(each).split()[0]) for agent, each in shown]
    assert steps == [(0, "0"), (1, "1"), (2, "with"), (4, "4")]


def test_the_most_remarkable_of_what_an_agent_does_is_shown(log: Log) -> None:
    work = [
        Evaluate(AgentId(1), TaskId("a")),
        Expand((AgentId(1), AgentId(2)), "op"),
        Evaluate(AgentId(2), TaskId("a")),
    ]
    assert find_states(work) == {1: AgentActivity.EXPANDING, 2: AgentActivity.EVALUATING}
    assert find_states(work, [AgentId(2)])[AgentId(2)] is AgentActivity.WAITS
    log.tree.barren[3] = BARREN
    child = Born((AgentId(0),), "op", CommitId("c" * 40), "why")
    log.tree._waiting[ActionId(9)] = WaitingChild(child, 0.0)
    assert find_tree_states(log.tree, living=True) == {3: AgentActivity.BARREN, 0: AgentActivity.WAITS}
    log.tree._pending[ActionId(10)] = work[1]
    assert find_tree_states(log.tree, living=True)[AgentId(1)] is AgentActivity.EXPANDING
    assert find_tree_states(log.tree, living=False) == {3: AgentActivity.BARREN, 0: AgentActivity.WAITS}
    shown = row_of(log.tree, log.tree.agents[3], state=AgentActivity.BARREN)
    assert plain_text(agent_line(shown, 80)).startswith("3 †  ")

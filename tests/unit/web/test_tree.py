import json
from random import Random

import numpy as np
import pytest

from dgm.archive.events import AgentBorn, VerdictWithdrawn
from dgm.domain import ActionId, AgentId, Born, CommitId, Evaluate, Expand, Tally, Verdict
from dgm.errors import UserError
from dgm.stats import wilson
from dgm.views.run import RunReader
from dgm.web.shared import RunSource
from dgm.web.tree import CHANGES, load_matches, load_row, load_tree, measure_intervals
from tests.support.runs.growing import TASKS, Growing


@pytest.fixture
def growing(tmp_path):
    steps = Growing(tmp_path / "run")
    yield steps
    steps.run.close()


@pytest.fixture
def source(growing):
    return RunSource(RunReader(growing.run))


def ask(source, **values):
    return json.loads(load_tree(source, {name: str(value) for name, value in values.items()}))


def merge(whole, change):
    """The columns after a change, as the page merges them."""
    for position, agent in enumerate(change["ids"]):
        for name, column in change["agents"].items():
            column_now = whole["agents"][name]
            if agent == len(column_now):
                column_now.append(column[position])
            else:
                column_now[agent] = column[position]
    crossovers = dict(map(tuple_of_pair, whole["crossovers"] + change["crossovers"]))
    crossovers = [[child, parents] for child, parents in sorted(crossovers.items())]
    return {**change, "ids": None, "agents": whole["agents"], "crossovers": crossovers}


def tuple_of_pair(pair):
    return pair[0], pair[1]


def grow(growing, rng):
    """One event of a search, or two."""
    count = len(growing.run.tree.agents)
    if rng.random() < 0.5:
        parents = rng.sample(range(count), min(count, 1 + (rng.random() < 0.3)))
        growing.born(*parents, operator=rng.choice(("self-edit", "module")))
        return
    agent = rng.randrange(count)
    untried = [n for n, task in enumerate(TASKS) if task not in growing.run.tree.tried(AgentId(agent))]
    if untried:
        growing.graded(agent, rng.choice(untried), good=rng.random() < 0.5)


def test_columns_hold_each_agents_parent_operator_and_tallies(growing, source):
    child = growing.born(0)
    growing.born(child, 0, operator="crossover")
    growing.graded(0, 0, good=False)
    growing.graded(1, 0, good=True)
    growing.graded(2, 1, good=True)
    answer = ask(source)
    low, high = (round(100 * end) for end in wilson(Tally(1, 0)))
    assert answer["ids"] is None
    assert answer["agents"] == {
        "parent": [-1, 0, 1],
        "operator": [0, 1, 2],
        "resolved": [0, 1, 1],
        "n": [1, 1, 1],
        "cladeResolved": [2, 2, 1],
        "cladeN": [3, 2, 1],
        "low": [0, low, low],
        "high": [round(100 * wilson(Tally(0, 1))[1]), high, high],
    }
    assert answer["operators"] == ["seed", "self-edit", "crossover"]
    assert answer["crossovers"] == [[2, [0]]]


def test_a_run_without_an_agent_has_empty_columns(tmp_path):
    steps = Growing(tmp_path / "empty", seed=False)
    with steps.run:
        answer = ask(RunSource(RunReader(steps.run)))
    assert {len(column) for column in answer["agents"].values()} == {0}
    assert answer["best"] is None


@pytest.mark.parametrize("seed", range(3))
def test_changes_added_to_earlier_columns_are_the_columns_of_now(growing, source, seed):
    rng = Random(seed)
    known = ask(source)
    for _ in range(15):
        for _ in range(rng.randrange(6)):
            grow(growing, rng)
        known = merge(known, ask(source, since=known["seq"]))
    assert known == ask(source)


def test_a_verdict_changes_its_agent_and_the_ancestors_only(growing, source):
    for parent in (0, 0, 1):
        growing.born(parent)
    before = ask(source)["seq"]
    growing.graded(3, 0, good=True)
    assert ask(source, since=before)["ids"] == [0, 1, 3]


def test_nothing_changed_after_the_last_event(growing, source):
    assert ask(source, since=growing.run.tree.seq)["ids"] == []


def test_a_withdrawn_verdict_is_a_change(growing, source):
    growing.graded(0, 0, good=True)
    before = growing.run.tree.seq
    what = Evaluate(AgentId(0), TASKS[0], 0)
    action = growing.run.tree.next_action - 1
    growing.run.append(VerdictWithdrawn(action, before, what, Verdict.RESOLVED, "refused"))
    change = ask(source, since=before)
    assert (change["ids"], change["agents"]["n"]) == ([0], [0])


def test_after_many_changes_all_agents_are_sent(growing, source):
    before = growing.run.tree.seq
    births = (
        AgentBorn(ActionId(0), AgentId(n), Born((AgentId(0),), "x", CommitId("0" * 40), ""))
        for n in range(1, CHANGES + 2)
    )
    growing.run.append_many(list(births))
    assert ask(source, since=before)["ids"] is None


def test_a_viewer_of_a_log_that_was_longer_gets_everything(growing, source):
    assert ask(source, since=growing.run.tree.seq + 1)["ids"] is None


def test_agents_with_work_under_way_have_a_state(growing, source):
    growing.born(0)
    growing.begin(Expand((AgentId(1),), "self-edit"))
    assert ask(source)["states"] == {"expanding": [1]}


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "", "9" * 20, "\u0663"])
def test_a_place_in_the_log_that_is_no_number_is_refused(source, text):
    with pytest.raises(UserError):
        load_tree(source, {"since": text})


def test_the_row_of_an_agent_is_that_of_the_tree_view(growing, source):
    growing.born(0, rationale="reads the test first")
    row = json.loads(load_row(source, {"agent": "1"}))
    assert (row["agent"], row["rationale"], row["parents"]) == (1, "reads the test first", [0])
    with pytest.raises(UserError):
        load_row(source, {"agent": "2"})


def test_agents_are_found_by_words(growing, source):
    growing.born(0, rationale="reads the TEST first")
    growing.born(0, rationale="another change")
    assert json.loads(load_matches(source, {"words": " test "})) == {"agents": [1], "more": 0}
    assert json.loads(load_matches(source, {})) == {"agents": [], "more": 0}


def test_intervals_are_those_of_each_tally():
    resolved, unresolved = np.array([3, 0, 7, 3, 0]), np.array([1, 0, 0, 1, 9])
    low, high = measure_intervals(resolved, unresolved)
    ends = [wilson(Tally(*pair)) for pair in zip(resolved.tolist(), unresolved.tolist(), strict=True)]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [
        (round(100 * a), round(100 * b)) for a, b in ends
    ]


def test_hostile_names_survive_as_data(growing, source):
    name = '</script>"\u2028\x00'
    growing.born(0, operator=name)
    assert ask(source)["operators"] == ["seed", name]

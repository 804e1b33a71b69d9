"""The cheapest agent that is not worse than the best one."""

from random import Random

import pytest

from dgm.analysis.agents import find_agent
from dgm.analysis.cheapest import LEVEL, find_cheapest
from dgm.archive.events import Recorded, TaskGraded, VerdictWithdrawn
from dgm.archive.measures import FirstAttempts
from dgm.config import ObjectiveSettings
from dgm.domain import SEED, ActionId, AgentId, Cost, Evaluate, Evaluation, TaskId, Usage, Verdict
from dgm.errors import UserError
from tests.support.runs.paid import small

OTHER, THIRD = AgentId(1), AgentId(2)


def add(first: FirstAttempts, agent: int, outcomes, tokens: int, usd: float = 0.0) -> None:
    for number, solved in enumerate(outcomes):
        if solved is not None:
            verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
            cost = Cost(Usage(1, tokens, 0, usd), 1.0)
            done = Evaluation(AgentId(agent), TaskId(f"t{number}"), 0, verdict, "", 0.0, cost)
            first.observe(Recorded(0, 0.0, TaskGraded(ActionId(1), done)))


def test_an_agent_that_agrees_on_enough_tasks_is_shown_with_its_share_of_the_cost():
    first = FirstAttempts()
    add(first, 0, [True, False] * 25, 1000)
    add(first, 1, [True, False] * 25, 400)
    answer = find_cheapest(first, SEED, ObjectiveSettings())
    assert answer.shown
    assert (answer.unit, answer.shown.agent, answer.shown.tasks) == ("tokens", OTHER, 50)
    assert (answer.shown.share, answer.shown.difference) == (0.4, 0.0)
    assert -0.1 < answer.lower_bound(answer.shown) < -0.06


def test_no_visible_difference_is_no_proof():
    first = FirstAttempts()
    add(first, 0, [True] * 20, 1000)
    add(first, 1, [True] * 20, 400)
    add(first, 2, [True] * 4, 10)
    answer = find_cheapest(first, SEED, ObjectiveSettings())
    assert answer.shown is None
    assert answer.candidate
    assert answer.candidate.agent == OTHER, "four tasks are too few to name an agent"
    assert answer.lower_bound(answer.candidate) < -0.1


def test_costs_are_compared_on_common_tasks_only():
    first = FirstAttempts()
    add(first, 0, [True] * 60 + [None] * 60, 1000)
    add(first, 1, [True] * 60 + [True] * 60, 900)
    for number in range(60, 120):
        done = first.of[OTHER][TaskId(f"t{number}")]
        first.of[OTHER][done.task] = Evaluation(
            OTHER, done.task, 0, Verdict.RESOLVED, "", 0.0, Cost(Usage(1, 9000))
        )
    answer = find_cheapest(first, SEED, ObjectiveSettings())
    assert answer.shown
    assert (answer.shown.tasks, answer.shown.cost, answer.shown.best_cost) == (60, 900.0, 1000.0)


def test_money_counts_where_any_was_spent_and_a_dearer_agent_never():
    first = FirstAttempts()
    add(first, 0, [True] * 60, 1000, 0.01)
    add(first, 1, [True] * 60, 400, 0.02)
    assert find_cheapest(first, SEED, ObjectiveSettings()).cheaper == []
    assert find_cheapest(first, SEED, ObjectiveSettings(cheapest="tokens")).shown


def test_withdrawn_verdicts_and_second_attempts_do_not_count():
    first = FirstAttempts()
    add(first, 0, [True, True], 10)
    again = Evaluation(SEED, TaskId("t0"), 1, Verdict.UNRESOLVED, "")
    first.observe(Recorded(1, 0.0, TaskGraded(ActionId(2), again)))
    what = Evaluate(SEED, TaskId("t1"))
    first.observe(Recorded(2, 0.0, VerdictWithdrawn(ActionId(1), 1, what, Verdict.RESOLVED, "")))
    assert first.means({"rate": 1.0}) == {SEED: (1.0, 1)}


def test_every_agent_that_could_be_shown_counts_in_the_level():
    # On six tasks an agent is shown to be not worse if it wins them all; on five, nothing can be shown.
    first = FirstAttempts()
    add(first, 0, [False] * 50, 1000)
    for agent, tasks in ((1, 50), (2, 6), (3, 5)):
        add(first, agent, [True] * tasks, 400)
    assert find_cheapest(first, SEED, ObjectiveSettings()).level == LEVEL / 2
    del first.of[AgentId(1)], first.of[AgentId(3)]
    answer = find_cheapest(first, SEED, ObjectiveSettings())
    assert answer.shown and answer.shown.agent == THIRD


def wrong_answers(worlds: int, seed: int) -> float:
    """Return the share of worlds whose answer loses the margin of 0.2: all ten cheaper agents do."""
    rng, wrong = Random(seed), 0
    for _ in range(worlds):
        first = FirstAttempts()
        best = [rng.random() < 0.6 for _ in range(60)]
        add(first, 0, best, 1000)
        for agent in range(1, 11):
            # Loses a third of what the best solves: 0.2 of all tasks; gains nothing.
            add(first, agent, [solved and rng.random() < 2 / 3 for solved in best], 1000 - agent)
        wrong += find_cheapest(first, SEED, ObjectiveSettings(margin=0.2)).shown is not None
    return wrong / worlds


def test_a_worse_agent_is_called_not_worse_in_at_most_five_of_a_hundred_worlds():
    # Over 150 worlds each, seeds 1 to 4 gave 0.013, 0.02, 0.0 and 0.02.
    assert wrong_answers(60, seed=1) <= 0.05


@pytest.mark.starts_processes
def test_cheapest_names_an_agent_only_where_one_is_shown(tmp_path):
    made = small(tmp_path / "paid")
    with pytest.raises(UserError, match="no agent is shown to be cheaper and not worse"):
        find_agent(made.run, "cheapest")
    made.run.close()

"""Tasks that were given up are told beside a tally, which does not count them."""

from dgm.analysis.best import rate_best
from dgm.analysis.given_up import count_given_up
from dgm.archive.events import ActionLost, ActionStarted
from dgm.domain import SEED, Evaluate, TaskId
from dgm.show.agents import agent_line, row_of
from dgm.show.best import best_text
from dgm.show.spans import plain_text
from dgm.show.words import given_up_text
from tests.support.runs.trees import Log

TASKS = tuple(TaskId(f"t{n}") for n in range(6))


def started(log, task):
    action = log.tree.next_action
    log.add(ActionStarted(action, Evaluate(SEED, task)))
    return action


def test_only_what_is_neither_graded_nor_under_way_was_given_up():
    log = Log(tasks=TASKS)
    log.born()
    log.graded(SEED, [True, False])
    started(log, TASKS[2])
    log.add(ActionLost(started(log, TASKS[3]), "failed"))
    assert count_given_up(log.tree, SEED) == 0
    for task in TASKS[4:]:
        log.add(ActionLost(started(log, task), "given up: failed", final=True))
    assert count_given_up(log.tree, SEED) == 2


def test_a_rate_is_shown_with_the_tasks_that_were_given_up():
    log = Log(tasks=TASKS)
    log.born()
    log.graded(SEED, [True])
    row = plain_text(agent_line(row_of(log.tree, log.tree.agents[SEED])))
    assert "given up" not in row + best_text(rate_best(log.tree, SEED))
    log.add(ActionLost(started(log, TASKS[4]), "given up: failed", final=True))
    row = plain_text(agent_line(row_of(log.tree, log.tree.agents[SEED])))
    assert "1/1 100% 21–100%  1 task given up  " in row
    assert best_text(rate_best(log.tree, SEED)).endswith(", 1 task given up")
    assert (given_up_text(0), given_up_text(2)) == ("", "2 tasks given up")

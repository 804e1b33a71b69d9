"""Tasks are abandoned when every evaluation failed for good."""

from dgm.analysis.agents import count_abandoned
from dgm.archive.events import ActionLost, ActionStarted
from dgm.domain import SEED, Evaluate, TaskId
from tests.support.runs.trees import Log

TASKS = tuple(TaskId(f"t{n}") for n in range(6))


def started(log, task):
    action = log.tree.next_action
    log.add(ActionStarted(action, Evaluate(SEED, task)))
    return action


def test_only_tasks_without_a_verdict_and_without_further_tries_are_abandoned():
    log = Log(tasks=TASKS)
    log.born()
    log.graded(SEED, [True, False])
    started(log, TASKS[2])
    log.add(ActionLost(started(log, TASKS[3]), "failed"))
    assert count_abandoned(log.tree, SEED) == 0
    for task in TASKS[4:]:
        log.add(ActionLost(started(log, task), "given up: failed", final=True))
    assert count_abandoned(log.tree, SEED) == 2

"""Metrics of evaluations, means on equal tasks, and the Pareto front."""

import json

import pytest

from dgm.archive.events import RunStarted, TaskGraded, decode, encode
from dgm.archive.measures import FirstAttempts, measure, reward_of, weigh
from dgm.domain import SEED, ActionId, AgentId, Budget, Cost, Evaluation, Objective, TaskId, Usage, Verdict
from dgm.policies.operators import Mates
from tests.support.runs.trees import TASKS, Log

FRONT = {"rate": 1, "tokens": -1}


def done(agent=0, task=0, *, solved=True, tokens=0, metrics=(), score=0.0) -> Evaluation:
    verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
    cost = Cost(Usage(1, tokens, 0, 0.5), 2.0)
    return Evaluation(AgentId(agent), TaskId(f"task-{task}"), 0, verdict, "", score, cost, (), metrics)


def attempts(*evaluations: Evaluation) -> FirstAttempts:
    first = FirstAttempts()
    for evaluation in evaluations:
        first.add(evaluation)
    return first


def test_every_evaluation_measures_its_cost_and_a_missing_metric_is_not_0():
    evaluation = done(tokens=300, metrics=(("bytes", 40.0),), score=0.25)
    names = ("rate", "score", "usd", "tokens", "seconds", "bytes", "speed")
    assert [measure(evaluation, name) for name in names] == [1.0, 0.25, 0.5, 300.0, 2.0, 40.0, None]
    assert weigh(evaluation, {"rate": 1.0, "bytes": -0.01}) == pytest.approx(0.6)
    assert weigh(evaluation, {"rate": 1.0, "speed": 1.0}) is None


def test_a_reward_is_clipped_and_0_where_a_metric_is_missing():
    evaluation = done(tokens=300)
    rewards = [
        reward_of(evaluation, each) for each in ({}, {"rate": 3.0}, {"tokens": -1.0}, {"rate": 1.0, "x": 0.0})
    ]
    assert rewards == [1.0, 1.0, 0.0, 0.0]


def test_an_agent_does_not_look_better_for_its_easier_tasks():
    # Task 1 costs ten times as much; agent 9 takes twice what the others take, but has met the cheap task only.
    both = [done(agent, task, tokens=10 ** (2 + task)) for agent in range(9) for task in (0, 1)]
    means = attempts(*both, done(9, 0, tokens=200)).means({"tokens": 1.0})
    assert means[SEED] == (pytest.approx(550, abs=5), 2)
    assert means[AgentId(9)].value == pytest.approx(605, abs=1), "650 without shrinkage"


def test_a_mean_rests_on_common_tasks_and_stays_within_what_was_measured():
    # Agents 1 and 2 met a task each that nobody else met: little says that these are hard or easy.
    seed = [done(0, task, solved=task < 2) for task in range(4)]
    means = attempts(*seed, done(1, 0), done(1, 4), done(2, 3), done(2, 5)).means({"rate": 1.0})
    assert means[AgentId(2)].value == 1.0, "1.14 without a limit"
    assert 0.8 < means[AgentId(1)].value < 1.0
    assert means[SEED].value == pytest.approx(0.5, abs=0.05)


def test_nobody_on_the_front_is_beaten():
    costs = {0: 100, 1: 50, 2: 200, 3: 10}
    solves = {0: 4, 1: 2, 2: 4, 3: 0}
    first = attempts(
        *(
            done(agent, task, solved=task < solves[agent], tokens=costs[agent])
            for agent in costs
            for task in range(8)
        ),
        done(4, 0, solved=True, tokens=1),
    )
    assert first.front(FRONT) == {0, 1}, "2 is dearer than 0, 3 resolves nothing, 4 has met one task of eight"


def objective_log(objective: Objective | None) -> Log:
    log = Log()
    log.add(RunStarted(Budget(evaluations=100), TASKS, resumed=True, objective=objective))
    for parents in ((), (0,), (0,), (0,)):
        log.born(*parents)
    for agent, solved, tokens in ((0, 0, 100), (1, 4, 100), (2, 2, 10), (3, 3, 500)):
        for task in range(6):
            log.add(TaskGraded(ActionId(0), done(agent, task, solved=task < solved, tokens=tokens)))
    return log


def test_the_mate_is_taken_from_the_front_where_there_is_one():
    tree = objective_log(Objective(front=FRONT)).tree
    assert tree.front == {1, 2}
    assert Mates().of(tree, AgentId(3)) == [1, 2]
    assert Mates().of(tree, AgentId(1)) == [2]
    without = objective_log(None).tree
    assert without.front == frozenset()
    assert Mates().of(without, AgentId(3)) == (), "its failures are nobody's successes"


def test_an_objective_is_read_back_and_left_out_where_there_is_none():
    event = RunStarted(Budget(), (), objective=Objective({"rate": 1}, {"score": 1.0}))
    assert decode(encode(event)) == event
    assert "objective" not in json.loads(encode(RunStarted(Budget(), ())))
    old = json.loads(encode(TaskGraded(ActionId(1), done())))
    del old["outcome"]["metrics"]
    assert decode(json.dumps(old)) == TaskGraded(ActionId(1), done())

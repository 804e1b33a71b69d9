"""Laws of ``lineage``: its passes are exact on any tree, and asking or replaying changes nothing."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.events import ActionLost, ActionStarted, AgentBorn, AgentStillborn, TaskGraded
from dgm.domain import AgentId, Born, Budget, CommitId, Evaluate, Evaluation, Expand, Stillborn, Verdict
from dgm.policies.limits import evaluations_left
from dgm.policies.lineage.hyper import Facts, Laws, log_likelihood, step_at
from dgm.policies.lineage.passes import Beliefs
from dgm.policies.lineage.steps import Step
from tests.support import lineage_dense as dense
from tests.support.runs.trees import Log, named

MEAN_DRIFT = 0.03
AMOUNT = st.floats(0.0, 5.0)


@st.composite
def trees(draw):
    """Parents, and per agent a precision and where its own verdicts put it."""
    n = draw(st.integers(1, 9))
    parents = [0, *(draw(st.integers(0, agent - 1)) for agent in range(1, n))]
    evidence = []
    for _ in range(n):
        precision = draw(AMOUNT)
        evidence.append((precision, precision * draw(st.floats(-3.0, 3.0))))
    return parents, evidence


@pytest.mark.slow
@given(trees(), st.floats(0.1, 1.0), st.floats(0.02, 0.6), st.floats(5e-4, 0.03))
@settings(max_examples=100, deadline=None)
def test_passes_and_likelihood_are_exact_on_any_tree(tree, rho, q, drift):
    parents, evidence = tree
    step = step_at(Laws(rho, q, drift), -0.3, MEAN_DRIFT)
    beliefs = Beliefs(step, MEAN_DRIFT)
    depths = []
    for agent, parent in enumerate(parents):
        beliefs.add(parent)
        depths.append(depths[parent] + 1 if agent else 0)
    for agent, (precision, eta) in enumerate(evidence):
        beliefs.set_evidence(agent, precision, eta, 1.0)
    for _ in range(12):
        beliefs.restart(step, MEAN_DRIFT)
    mean, cov = dense.posterior(parents, step, MEAN_DRIFT, evidence)
    assert [state[:2] for state in beliefs.states] == pytest.approx(mean.reshape(-1, 2), abs=1e-6)
    assert [state.tt for state in beliefs.states] == pytest.approx(np.diag(cov)[::2], abs=1e-6)

    precisions, etas = zip(*evidence, strict=True)
    facts = Facts(parents, depths, precisions, etas, [1.0] * len(parents))
    steps = Step(np.array([rho]), np.array([q]), np.array([step.c1]), step.c2, np.array([drift]))
    ours = log_likelihood(facts, steps, MEAN_DRIFT)[0]
    assert ours == pytest.approx(dense.log_likelihood(parents, step, MEAN_DRIFT, evidence), abs=1e-7)


class Life:
    """A search whose outcomes and faults are drawn from one stream, by several workers."""

    def __init__(self, seed, workers):
        self.log = Log(Budget(evaluations=40, expansion_cost=1.0))
        self.log.born()
        self.policy = named("lineage")
        self.seed = seed
        self.workers = workers
        self.chance = Random(seed)
        self.observed = 0
        self.decisions = []
        """How many events were known, and what was decided."""

    def decide(self):
        events = self.log.events
        for event in events[self.observed :]:
            self.policy.observe(event)
        self.observed = len(events)
        action = self.policy.next(self.log.tree, Random(f"{self.seed}/{self.log.tree.next_action}"))
        self.decisions.append((len(events), action))
        return action

    def live(self):
        tree = self.log.tree
        for _ in range(200):
            while len(tree.pending) < self.workers and tree.to_redo():
                number, what = next(iter(tree.to_redo().items()))
                self.log.add(ActionStarted(number, what, again=True))
            if evaluations_left(tree) >= 1 and len(tree.pending) < self.workers:
                action = self.decide()
                if action is not None:
                    if isinstance(action, Evaluate):
                        assert action.task not in tree.tried(action.agent)
                    self.log.add(ActionStarted(tree.next_action, action))
                    continue
            if not tree.pending:
                break
            self.end(self.chance.choice(list(tree.pending)))

    def end(self, number):
        what, luck = self.log.tree.pending[number], self.chance.random()
        if luck < 0.1:
            self.log.add(ActionLost(number, "killed", final=luck < 0.02))
        elif isinstance(what, Evaluate):
            verdict = [Verdict.RESOLVED, Verdict.UNRESOLVED, Verdict.INVALID][int(luck * 2.2)]
            self.log.add(TaskGraded(number, Evaluation(what.agent, what.task, 0, verdict, "")))
        elif luck < 0.3:
            self.log.add(AgentStillborn(number, Stillborn(what.parents, "self-edit", "check", "")))
        else:
            child = AgentId(len(self.log.tree.agents))
            self.log.add(AgentBorn(number, child, Born(what.parents, "self-edit", CommitId(f"c{child}"), "")))


@pytest.mark.slow
@given(st.integers(0, 10_000), st.sampled_from([1, 3, 12]))
@settings(max_examples=25, deadline=None)
def test_a_replay_decides_the_same_whenever_it_is_asked(seed, workers):
    life = Life(seed, workers)
    life.live()
    assert any(isinstance(action, Expand) for _, action in life.decisions)
    replay, again = named("lineage"), Log.__new__(Log)
    again.tree, again.events = type(life.log.tree)(), []
    due = iter(life.decisions)
    moment, decided = next(due)
    meddler = Random(seed + 1)
    for count, event in enumerate(life.log.events, 1):
        again.tree.apply(event)
        replay.observe(event)
        if again.tree.agents and meddler.random() < 0.3:
            replay.next(again.tree, Random(0))
        while moment == count:
            stream = Random(f"{seed}/{again.tree.next_action}")
            assert replay.next(again.tree, stream) == decided
            moment, decided = next(due, (0, None))
    assert moment == 0, "every decision was asked again"

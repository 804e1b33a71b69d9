"""The curve of the best agent says what the tree said at each moment."""

from random import Random

import pytest

from dgm.archive.events import AgentBorn, ModelCalled, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Born, Budget, CommitId, Evaluation, TaskId, Usage, Verdict
from dgm.policies.hgm import best_belief
from dgm.stats import lower_bound, wilson
from dgm.views.curve import compute_curve


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def random_run(tmp_path):
    """600 verdicts on 8 agents in two sessions with a day between them."""
    with Run.create(tmp_path / "run", {}) as run:
        clock = run.store._clock = Clock()
        rng = Random(7)
        tasks = tuple(TaskId(f"t{n}") for n in range(700))
        run.append(RunStarted(Budget(), tasks))
        for agent in range(8):
            parents = (AgentId(0),) if agent else ()
            run.append(
                AgentBorn(ActionId(agent), AgentId(agent), Born(parents, "op", CommitId("0" * 40), ""))
            )
        for number in range(600):
            clock.now += 2
            if number == 300:
                clock.now += 86_400
                run.append(RunStarted(Budget(), tasks, resumed=True))
            call = ModelCalled(ActionId(9 + number), 1, "m", "solve", Usage(1, 90, 10, 0.5))
            run.append(call)
            agent = AgentId(rng.randrange(8))
            verdict = Verdict.RESOLVED if rng.random() < 0.1 * agent else Verdict.UNRESOLVED
            verdict = Verdict.INVALID if number % 50 == 0 else verdict
            run.append(TaskGraded(ActionId(9 + number), Evaluation(agent, tasks[number], 0, verdict, "")))
        yield run


@pytest.mark.slow
def test_each_point_is_what_the_tree_believed(random_run) -> None:
    points = {point.evaluations: point for point in compute_curve(random_run, most=10_000)}
    tree, last, checked = Tree(), None, 0
    for recorded in random_run.store.read():
        tree.apply(recorded)
        if not isinstance(recorded.event, TaskGraded) or not tree.evaluations:
            continue
        last = points.get(tree.evaluations, last)
        assert last is not None
        best = best_belief(tree)
        own = tree.own(best)
        assert (last.agent, last.rate, last.lower_bound) == (best, own.rate, lower_bound(own))
        assert last.interval == wilson(own)
        checked += 1
    assert checked > 580
    assert len({point.agent for point in points.values()}) > 2


@pytest.mark.slow
def test_its_end_is_the_end_of_the_run(random_run) -> None:
    end, tree = compute_curve(random_run)[-1], random_run.tree
    assert (end.evaluations, end.tokens, end.usd) == (588, tree.spend.tokens, tree.spend.usd)
    assert end.seconds == pytest.approx(tree.wall_seconds) == pytest.approx(1200, abs=10)
    assert end.agent == best_belief(tree)


@pytest.mark.slow
def test_few_points_keep_both_ends(random_run) -> None:
    whole, few = compute_curve(random_run, most=10_000), compute_curve(random_run, most=20)
    assert len(few) == 20
    assert (few[0], few[-1]) == (whole[0], whole[-1])
    assert set(few) <= set(whole)


def test_a_run_without_a_verdict_has_no_curve(tmp_path) -> None:
    with Run.create(tmp_path / "run", {}) as run:
        run.append(RunStarted(Budget(), ()))
        assert compute_curve(run) == []

"""Rules that hold for every policy, policies by name and by reference, and parts taken from other policies."""

from random import Random
from types import SimpleNamespace

import pytest

from dgm.analysis.agents import best_of
from dgm.archive.events import ActionLost, ActionStarted, ChildProposed
from dgm.archive.run import Run
from dgm.config import Settings, resolve
from dgm.domain import SEED, AgentId, Born, Budget, CommitId, Evaluate, Expand, Usage
from dgm.errors import UserError
from dgm.plugins import lend_object
from dgm.policies.limits import share_left
from dgm.policies.operators import open_operators
from dgm.policies.policy import Plan, PlannedPolicy, View, draw_weighted, policy
from dgm.policies.registry import POLICIES, best_agent, open_policy, refuse_idle
from tests.support.runs.trees import TASKS, Log, named

EVERY_POLICY = sorted(POLICIES)
EXPAND, EVALUATE = Expand((SEED,), "other"), Evaluate(SEED, TASKS[0])


def perform(plan, log):
    """The step that follows from a plan, or from a step instead of one."""
    return PlannedPolicy(
        "mine", lambda view, rng: plan, *open_operators(Settings(operator="other"), {})
    ).next(log.tree, Random(0))


def plan_of(expand, parent, agent, calls=None):
    def answer(what, value):
        if calls is not None:
            calls.append(what)
        return value

    return Plan(
        expand, lambda: answer("parent", parent), lambda: answer("agent", agent), lambda agent: TASKS[0]
    )


def lonely(budget=None):
    log = Log(budget)
    log.born()
    return log


@pytest.mark.parametrize(
    ("budget", "share"),
    [
        (Budget(), 1.0),
        (Budget(usd=10.0), 0.75),
        (Budget(usd=10.0, seconds=40.0), 0.5),
        (Budget(tokens=1_000, seconds=40.0), 0.1),
        (Budget(usd=2.0), 0.0),
    ],
)
def test_the_tightest_limit_decides_what_is_left(budget, share):
    spent = SimpleNamespace(
        budget=budget,
        spend=Usage(5, 890, 110, 3.5),
        promotion_spend=Usage(1, 90, 10, 1.0),
        wall_seconds=30.0,
        promotion_seconds=10.0,
    )
    assert share_left(spent) == pytest.approx(share)


def family():
    """A seed that solved one of two tasks, and two children that solved both of theirs."""
    log = Log()
    for number, verdicts in enumerate([[True, False], [True, True], [True, True]]):
        log.born(*([0] if number else []))
        log.graded(number, verdicts)
    return log


def test_children_on_their_way_are_added_to_those_that_are_born():
    log = family()
    for parents in ((SEED,), (AgentId(1), SEED), (AgentId(1), AgentId(1))):
        log.start(Expand(parents, "self-edit"))
    assert View(log.tree).children.tolist() == [2 + 2, 0 + 2, 0]


# Plans


@pytest.mark.parametrize(
    ("expand", "parent", "agent", "expected"),
    [
        (True, 0, 0, EXPAND),
        (False, 0, 0, EVALUATE),
        (True, None, 0, EVALUATE),  # nobody is to be a parent
        (False, 0, None, EXPAND),  # nobody is to be evaluated
        (True, None, None, EVALUATE),  # neither: there is a task that nobody asked for
        (False, None, None, EVALUATE),
    ],
)
def test_an_answer_that_names_nobody_leaves_the_step_to_the_other(expand, parent, agent, expected):
    calls = []
    assert perform(plan_of(expand, parent, agent, calls), lonely()) == expected
    assert calls.count("parent") <= 1


@pytest.mark.parametrize("agent", [0, None])
def test_an_archive_that_may_not_grow_does_not(agent):
    calls = []
    assert perform(plan_of(True, 0, agent, calls), lonely(Budget(agents=1))) == EVALUATE
    assert calls == ["agent"]


NOBODY = plan_of(True, None, None)


def test_a_task_that_nobody_asks_for_goes_to_the_oldest_of_the_best():
    assert perform(NOBODY, family()).agent == 1
    log = lonely()
    log.graded(0, [True] * len(TASKS))
    assert perform(NOBODY, log) is None


@pytest.mark.parametrize("state", ["running", "lost", "waiting"])
@pytest.mark.parametrize("action", [EXPAND, Evaluate(SEED, TASKS[9])])
def test_a_task_that_nobody_asks_for_waits_for_work_in_flight(state, action):
    log = family()
    number = log.tree.next_action
    log.add(ActionStarted(number, action))
    if state == "lost":
        log.add(ActionLost(number, "killed"))
    if state == "waiting" and action is EXPAND:
        log.add(ChildProposed(number, Born((SEED,), "other", CommitId("c" * 40), "why")))
    assert perform(NOBODY, log) is None


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (None, None),
        (Evaluate(SEED, TASKS[3]), Evaluate(SEED, TASKS[3])),
        (
            Expand((SEED,), "self-edit"),
            EXPAND,
        ),  # the settings' operator stands in place of the default's name
        (Expand((SEED,), "module"), Expand((SEED,), "module")),
        (Expand((SEED, SEED), "self-edit"), Expand((SEED, SEED), "self-edit")),
    ],
)
def test_a_step_instead_of_a_plan_is_obeyed(step, expected):
    assert perform(step, lonely()) == expected


def test_weighted_draws():
    agents = family().tree.agents

    def shares(weights):
        ids = [draw_weighted(weights, agent_ids, Random(seed)) for seed in range(400)]
        return [round(ids.count(agent.id) / 400, 1) for agent in agents]

    import numpy as np

    agent_ids = np.array([0, 1, 2])
    assert shares(np.array([1.0, 0.0, 3.0])) == pytest.approx([0.2, 0.0, 0.8], abs=0.11)
    assert shares(np.zeros(3)) == pytest.approx([0.3, 0.3, 0.3], abs=0.11)
    assert draw_weighted(np.zeros(0), agent_ids[:0], Random(0)) is None


# Policies by name and by reference


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_every_policy_opens_under_its_name_and_hands_out_an_agent(name):
    assert named(name).name == name
    assert best_agent(Settings(policy={"name": name}).policy, lonely().tree) == 0


@policy
def youngest(view, rng):
    return Plan(False, lambda: None, lambda: view.open[-1])


def unmarked(view, rng):
    return None


@policy
def wrong_arguments(view):
    return None


class Counting:
    """Children of the seed for so many events; then evaluations."""

    def __init__(self):
        self.events = 0

    def observe(self, event):
        self.events += 1

    def decide(self, view, rng):
        return Plan(self.events < 4, lambda: SEED, lambda: SEED)


def test_a_function_is_a_policy():
    assert named(f"{__name__}:youngest").next(family().tree, Random(0)).agent == 2
    lent = lend_object("policies", unmarked)
    assert named(lent).next(family().tree, Random(0)) is None


def test_a_class_is_a_policy_with_state():
    log = lonely()
    log.graded(0, [True])
    opened = named(f"{__name__}:Counting")
    assert opened.keeps_state and not named("hgm").keeps_state
    steps = []
    for event in [*log.events, *log.events]:
        opened.observe(event)
        steps.append(type(opened.next(log.tree, Random(0))))
    assert steps == [Expand] * 3 + [Evaluate] * 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "dmg"}, r"^unknown name 'dmg' among the policies \(did you mean 'dgm'\? there are: "),
        ({"name": "os.path:exists"}, r"is a function, .*; mark it with @policy"),
        ({"name": f"{__name__}:wrong_arguments"}, r"test_policy\.py:\d+: must take 2 arguments"),
        ({"gate": "stagd"}, r"^policy\.gate: unknown name 'stagd' among the policies"),
        ({"parent": "dmg"}, r"^policy\.parent: unknown name 'dmg' among the policies \(did you mean 'dgm'"),
        ({"recommendation": "best-believe"}, r"^policy\.recommendation: .*did you mean 'best-belief'"),
    ],
)
def test_a_policy_that_cannot_be_opened_is_refused_in_one_line(settings, message):
    with pytest.raises(UserError, match=message) as error:
        open_policy(Settings(policy=settings))
    assert "\n" not in str(error.value)


# Parts of other policies


def test_settings_take_a_part_from_another_policy():
    log = Log()
    for parent in ((), (0,), (0,)):
        log.born(*parent)
    for agent in range(3):
        log.graded(agent, [True] * 10)
    mixed = open_policy(resolve(None, ["policy.name=hgm", "policy.parent=no-archive"], {}))
    assert {mixed.next(log.tree, Random(seed)).parents for seed in range(20)} == {(AgentId(2),)}
    assert len({named("hgm").next(log.tree, Random(seed)).parents for seed in range(20)}) > 1
    assert named("hgm", evaluation=f"{__name__}:youngest").next(family().tree, Random(0)).agent == 2


class Stepwise:
    """A policy that chooses every step itself."""

    def __init__(self, limit=1):
        self.limit = limit

    def next(self, tree, rng):
        return (
            Evaluate(SEED, TASKS[0]) if len(tree.tried(SEED)) < self.limit else Expand((SEED,), "self-edit")
        )

    def observe(self, event):
        """No state."""


@pytest.mark.parametrize(("limit", "step"), [(1, Expand), (2, Evaluate)])
def test_an_object_with_next_chooses_every_step(limit, step):
    log = lonely()
    log.graded(0, [True])
    assert type(named(lend_object("policies", Stepwise(limit))).next(log.tree, Random(0))) is step


def test_a_policy_without_plans_has_no_parts():
    mixed = named("hgm", parent=lend_object("policies", unmarked))
    with pytest.raises(UserError, match="has no parts to exchange"):
        mixed.next(lonely().tree, Random(0))


def refusal(**policy):
    try:
        refuse_idle(Settings(policy=policy).policy)
    except UserError as error:
        return str(error)
    return ""


def test_alpha_that_nothing_reads_is_refused():
    assert refusal(name="lineage", alpha=0.5) == (
        "policy.alpha = 0.5: does nothing with the gate 'lineage', only with 'hgm'; "
        "leave it out or set policy.gate to 'hgm'"
    )
    for part in ("name", "gate", "parent", "evaluation", "task", "recommendation"):
        assert not refusal(**{"name": "lineage", "alpha": 0.5, part: "a-plug-in"})


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_alpha_is_refused_exactly_where_it_changes_nothing(name):
    """A wide gate and a narrow one, on an archive whose stages are over."""
    log = family()
    for agent in range(3):
        log.graded(agent, [True] * 8)
    steps = []
    for alpha in (0.2, 0.9):
        opened = named(name, alpha=alpha)
        for event in log.events:
            opened.observe(event)
        steps.append(opened.next(log.tree, Random(0)))
    log.born(0)
    for alpha in (0.2, 0.9):
        opened = named(name, alpha=alpha)
        for event in log.events:
            opened.observe(event)
        steps.append(opened.next(log.tree, Random(0)))
    reads = steps[0] != steps[1] or steps[2] != steps[3]
    assert bool(refusal(name=name, alpha=0.5)) is not reads
    assert not refusal(name=name, alpha=0.6)
    assert not refusal(name=name, alpha=0.5, gate="hgm")


# Readers of a run


@pytest.mark.parametrize(
    ("policy", "best"),
    [
        ({}, 1),
        ({"recommendation": "lineage"}, 0),
        ({"name": "lineage", "alpha": 0.5}, 0),
        ({"name": "hgm"}, 1),
        ({"name": "a-plug-in-that-is-not-installed"}, 1),
        ({"recommendation": "nobodys:Pick"}, 1),
    ],
)
def test_a_run_that_names_no_policy_is_read_as_hgm_would(policy, best, tmp_path):
    log = Log()
    log.born()
    log.graded(0, [True, False])
    log.born(0)
    log.graded(1, [True, True])
    with Run.create(tmp_path / "run", {"id": "0" * 16, "settings": {"policy": policy}}) as run:
        for recorded in log.events:
            run.append(recorded.event)
        assert best_of(run) == best

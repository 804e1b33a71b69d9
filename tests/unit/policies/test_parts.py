"""How a policy is put together: from which parts, by which names, and which part has the say."""

from collections import Counter
from random import Random

import pytest

from dgm.analysis.best import best_of
from dgm.archive.events import ActionLost, ActionStarted, ChildProposed
from dgm.archive.run import Run
from dgm.config import Settings, resolve
from dgm.domain import AgentId, Born, Budget, CommitId, Evaluate, Expand
from dgm.errors import UserError
from dgm.plugins import find_plugin
from dgm.policies.composed import Composed
from dgm.policies.registry import GATES, POLICIES, best_agent, open_policy, refuse_idle
from dgm.policies.rules import PolicyContext
from tests.support.runs.trees import TASKS, Log, named

EVERY_POLICY = sorted(POLICIES)


def decide(policy, log, seed=0):
    return policy.next(log.tree, Random(seed))


# How parts are put together


class Parts:
    """A gate, a parent rule, an evaluation rule and a task rule with fixed answers; counts what it is asked."""

    def __init__(self, expands, parents, target):
        self.answers = expands, tuple(map(AgentId, parents)), target
        self.asked = Counter()

    def expands(self, tree, rng):
        self.asked["gate"] += 1
        return self.answers[0]

    def parents(self, tree, rng):
        self.asked["parent"] += 1
        return self.answers[1]

    def target(self, tree, rng):
        self.asked["evaluation"] += 1
        return self.answers[2]

    def task(self, tree, agent, rng):
        return TASKS[0]


def put_together(parts, budget=None, kit=None):
    log = Log(budget)
    log.born()
    return Composed("parts", kit or PolicyContext("other"), parts, parts, parts, parts).next(
        log.tree, Random(0)
    )


EXPAND = Expand((AgentId(0),), "other")
EVALUATE = Evaluate(AgentId(0), TASKS[0])


@pytest.mark.parametrize(
    ("expands", "parents", "target", "expected"),
    [
        (True, [0], 0, EXPAND),
        (False, [0], 0, EVALUATE),
        (True, [], 0, EVALUATE),  # nobody is to be a parent
        (False, [0], None, EXPAND),  # nobody is to be evaluated
        (True, [], None, EVALUATE),  # neither: there is a task that nobody asked for
        (False, [], None, EVALUATE),
    ],
)
def test_a_part_that_names_nobody_leaves_the_step_to_the_other(expands, parents, target, expected):
    assert put_together(Parts(expands, parents, target)) == expected


def family():
    """A seed that solved one of two tasks, and two children that solved both of theirs."""
    log = Log()
    for number, verdicts in enumerate([[True, False], [True, True], [True, True]]):
        log.born(*([0] if number else []))
        log.graded(number, verdicts)
    return log


def without_a_rule(log):
    """What is done where no part names anybody."""
    parts = Parts(True, [], None)
    return Composed("parts", PolicyContext("other"), parts, parts, parts, parts).next(log.tree, Random(0))


def test_what_nobody_asks_for_goes_to_the_best_and_of_these_to_the_oldest():
    assert without_a_rule(family()).agent == 1


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("action", [EXPAND, Evaluate(AgentId(0), TASKS[9])])
def test_what_nobody_asks_for_is_not_done_while_something_is_under_way(action, lost):
    log = family()
    number = log.tree.next_action
    log.add(ActionStarted(number, action))
    if lost:
        log.add(ActionLost(number, "killed"))
    assert without_a_rule(log) is None


def test_what_nobody_asks_for_is_not_done_while_a_child_waits_for_a_person():
    log = family()
    number = log.tree.next_action
    log.add(ActionStarted(number, EXPAND))
    log.add(ChildProposed(number, Born((AgentId(0),), "other", CommitId("c" * 40), "why")))
    assert without_a_rule(log) is None


def test_a_search_ends_when_every_agent_has_tried_every_task():
    log = Log()
    log.born()
    log.graded(0, [True] * len(TASKS))
    assert without_a_rule(log) is None


@pytest.mark.parametrize("target", [0, None])
def test_an_archive_that_may_not_grow_does_not_whoever_says_so(target):
    parts = Parts(True, [0], target)
    assert put_together(parts, Budget(agents=1)) == EVALUATE
    assert not parts.asked["gate"]
    assert not parts.asked["parent"]


def test_nobody_is_asked_twice_for_a_parent():
    parts = Parts(True, [], None)
    put_together(parts)
    assert parts.asked["parent"] == 1


def test_a_crossover_has_two_parents():
    assert put_together(Parts(True, [0, 0], None)).parents == (0, 0)


class Counting:
    """Counts the events that it is shown."""

    def __init__(self):
        self.events = []

    def observe(self, event):
        self.events.append(event)


def test_shared_state_sees_every_event_once():
    kit = PolicyContext()
    state = kit.shared(Counting)
    assert kit.shared(Counting) is state
    parts = Parts(True, [0], 0)
    parts.observe = state.observe
    log = Log()
    log.born()
    composed = Composed("parts", kit, *[Parts(True, [0], 0)] * 4)
    assert composed.keeps_state
    for event in log.events:
        composed.observe(event)
    assert state.events == log.events


def test_a_part_with_several_roles_sees_every_event_once():
    class Folding(Parts, Counting):
        def __init__(self):
            Parts.__init__(self, True, [0], 0)
            Counting.__init__(self)

    log, part = Log(), Folding()
    composed = Composed("parts", PolicyContext(), part, part, part, part)
    for event in log.events:
        composed.observe(event)
    assert part.events == log.events


def test_parts_without_state_are_shown_nothing():
    assert not Composed("parts", PolicyContext(), *[Parts(True, [0], 0)] * 4).keeps_state


# Policies by name


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_every_policy_opens_under_its_name(name):
    assert named(name).name == name


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_every_policy_hands_out_an_agent(name):
    log = Log()
    log.born()
    assert best_agent(Settings(policy={"name": name}).policy, log.tree) == 0


@pytest.mark.parametrize(
    ("part", "wrong", "kind", "meant"),
    [
        ("gate", "stagd", "gates", "staged"),
        ("parent", "dmg", "parent rules", "dgm"),
        ("evaluation", "stage", "evaluation rules", "staged"),
        ("task", "fixed_order", "task rules", "fixed-order"),
        ("recommendation", "best-believe", "recommendations", "best-belief"),
    ],
)
def test_an_unknown_part_is_told_in_one_line_with_a_suggestion(part, wrong, kind, meant):
    with pytest.raises(UserError) as told:
        named("hgm", **{part: wrong})
    assert str(told.value).startswith(
        f"policy.{part}: unknown name '{wrong}' among the {kind} (did you mean '{meant}'? there are: "
    )
    assert "\n" not in str(told.value)


def test_an_unknown_policy_is_told_in_one_line_with_a_suggestion():
    with pytest.raises(
        UserError, match=r"^unknown name 'dmg' among the policies \(did you mean 'dgm'\? there are: "
    ):
        named("dmg")


def test_an_unknown_recommendation_is_told_to_readers_of_a_run():
    log = Log()
    log.born()
    with pytest.raises(UserError, match=r"^policy\.recommendation: unknown name 'best'"):
        best_agent(Settings(policy={"recommendation": "best"}).policy, log.tree)


def test_settings_put_one_part_in_place_of_the_policy_s_own():
    log = Log()
    for parent in ((), (0,), (0,)):
        log.born(*parent)
    for agent in range(3):
        log.graded(agent, [True] * 10)
    given = ["policy.name=hgm", "policy.parent=no-archive"]
    policy = open_policy(resolve(None, given, {}))
    assert {decide(policy, log, seed).parents for seed in range(20)} == {(AgentId(2),)}
    assert len({decide(named("hgm"), log, seed).parents for seed in range(20)}) > 1


# Settings that nothing would read


def refused(**policy):
    """What is said against the settings; empty where nothing is."""
    try:
        refuse_idle(Settings(policy=policy).policy)
    except UserError as error:
        return str(error)
    return ""


def test_alpha_that_nothing_reads_is_told_in_one_line():
    assert refused(name="lineage", alpha=0.5) == (
        "policy.alpha = 0.5: does nothing with the gate 'lineage', only with 'hgm'; "
        "leave it out or set policy.gate to 'hgm'"
    )


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_policy_is_refused_an_alpha_exactly_where_its_gate_reads_none(name):
    expected = find_plugin("policies", name, POLICIES).gate != "hgm"
    assert bool(refused(name=name, alpha=0.5)) is expected
    assert not refused(name=name, alpha=0.6)
    assert not refused(name=name, alpha=0.5, gate="hgm")


@pytest.mark.parametrize("gate", sorted(GATES))
def test_the_gate_hgm_alone_reads_alpha(gate):
    class Telling(PolicyContext):
        read = False

        def __getattribute__(self, attribute):
            if attribute == "alpha":
                Telling.read = True
            return super().__getattribute__(attribute)

    find_plugin("gates", gate, GATES)(Telling())
    assert Telling.read is (gate == "hgm")
    assert bool(refused(name="hgm", gate=gate, alpha=0.5)) is not Telling.read


@pytest.mark.parametrize("part", ["name", "gate", "parent", "evaluation", "task", "recommendation"])
def test_a_plug_in_may_read_alpha(part):
    assert not refused(**{"name": "lineage", "alpha": 0.5, part: "a-plug-in"})


def test_a_policy_with_an_alpha_that_nothing_reads_still_opens():
    assert named("lineage", alpha=0.5).name == "lineage"


# Readers of a run


@pytest.mark.parametrize(
    ("policy", "best"),
    [
        ({}, 1),
        ({"alpha": 0.5}, 1),
        ({"recommendation": "lineage"}, 0),
        ({"name": "lineage"}, 0),
        ({"name": "lineage", "alpha": 0.5}, 0),
        ({"name": "hgm"}, 1),
        ({"name": "a-plug-in-that-is-not-installed"}, 1),
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

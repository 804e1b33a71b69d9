"""Laws of the fold, over random histories."""

import copy
import tempfile
from pathlib import Path

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    CallBooked,
    CallStarted,
    ChildProposed,
    Event,
    ModelCalled,
    ModelLearned,
    ModelNoted,
    NoteKind,
    Recorded,
    RunChanged,
    RunStarted,
    RunStopped,
    TaskGraded,
    VerdictWithdrawn,
    decode,
    encode,
)
from dgm.archive.log import Log
from dgm.archive.tree import Tree
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Digest,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    Tally,
    TaskId,
    Usage,
    Verdict,
)
from dgm.exports.graph import to_networkx

CALLS = ("call", "begun", "cut", "corrected", "model")
"""Steps of an action that goes on after them."""
TASKS = tuple(TaskId(f"task-{n}") for n in range(4))


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """What a search could write: agents with one or two parents, actions that end in every way or not at all."""
    events: list[Event] = [
        RunStarted(Budget(evaluations=10), TASKS, flips=draw(st.booleans())),
        AgentBorn(ActionId(0), AgentId(0), Born((), "seed", CommitId("0" * 40), "seed")),
    ]
    agents, open_actions, done = 1, {}, set()
    for action in range(1, draw(st.integers(0, 25)) + 1):
        members = st.integers(0, agents - 1).map(AgentId)
        parents = draw(st.lists(members, min_size=1, max_size=2, unique=True))
        what: Evaluate | Expand = Expand(tuple(parents), "op")
        wanted = (parents[0], draw(st.sampled_from(TASKS)))
        if draw(st.booleans()) and wanted not in done:
            done.add(wanted)
            what = Evaluate(*wanted)
        open_actions[ActionId(action)] = what
        events.append(ActionStarted(ActionId(action), what))
        finishing = draw(st.sampled_from([None, *open_actions]))
        if finishing is not None:
            what = open_actions.pop(finishing)
            end = draw(st.sampled_from([*CALLS, "done", "failed", "lost", "given up", "asked", "withdrawn"]))
            times = sum(isinstance(e, VerdictWithdrawn) and e.action == finishing for e in events)
            events += _ending(finishing, what, end, agents, times)
            agents += isinstance(events[-1], AgentBorn)
            open_still = ("failed", "withdrawn") if isinstance(what, Evaluate) else ("asked",)
            if end in (*CALLS, "lost", *open_still):
                open_actions[finishing] = what
    if draw(st.booleans()):
        events.append(RunStopped("budget"))
    return events


def _ending(action: ActionId, what: Evaluate | Expand, end: str, agents: int, times: int = 0) -> list[Event]:
    again = ActionStarted(action, what, again=True)
    match end, what:
        case (("call" | "begun" | "cut" | "corrected" | "model"), _):
            return _calls(action, agents * 1000 + action * 50, end)
        case "lost", _:
            return [ActionLost(action, "killed"), again]
        case "given up", _:
            return [ActionLost(action, "too often", final=True)]
        case "failed", Evaluate(agent, task):
            return [TaskGraded(action, Evaluation(agent, task, 0, Verdict.INVALID, "engine died")), again]
        case "asked", Expand(parents, operator):
            return [ChildProposed(action, Born(parents, operator, CommitId("c" * 40), "why", Cost(), "1:a"))]
        case "done" | "asked" | "withdrawn", Evaluate(agent, task):
            verdict = Verdict.RESOLVED if action % 2 else Verdict.UNRESOLVED
            cost = Cost(Usage(1, 2, 3, 0.5), 1.25, {"log": Digest("c" * 64)})
            graded = TaskGraded(
                action, Evaluation(agent, task, 0, verdict, "n\u00e4\udcff", 0.5, cost), times
            )
            gone = VerdictWithdrawn(action, 7, what, verdict, "refused \udcff", (3, 4))
            change = RunChanged({"models": {"solve": "m"}})
            return [graded, change, gone, again] if end == "withdrawn" else [graded]
        case "done", Expand(parents, operator):
            return [
                AgentBorn(action, AgentId(agents), Born(parents, operator, CommitId(f"{agents:040x}"), "why"))
            ]
        case _, Expand(parents, operator):
            return [AgentStillborn(action, Stillborn(parents, operator, "check", "no"))]
    raise AssertionError(end)


def _calls(action: ActionId, number: int, end: str) -> list[Event]:
    """A call that is answered, under way, cut off, or cut off and counted at less since; and what a model taught."""
    most, usage, model = Usage(1, 1007, 600, 1.5), Usage(1, 7, 3, 0.5, 2, 1, 1), "m \udcff"
    begun = CallStarted(action, number, model, "solve", most)
    called = ModelCalled(action, number, model, "solve", usage, 0.25)
    cut = CallBooked(action, number, model, "solve", most, open=True)
    less = CallBooked(action, number, model, "solve", Usage(0, -1000, 0, -0.25))
    learned = ModelLearned(model, {"dropped": ["top_p"]}, "no top_p \udcff", usage)
    noted = ModelNoted(model, NoteKind.WAITS, "slow down", 1e9)
    steps: dict[str, list[Event]] = {
        "call": [begun, called],
        "begun": [begun],
        "cut": [begun, cut],
        "corrected": [begun, cut, less],
        "model": [learned, noted],
    }
    return steps[end]


def applied(events: list[Event]) -> Tree:
    tree = Tree()
    for seq, event in enumerate(events, 1):
        tree.apply(Recorded(seq, float(seq), event))
    return tree


def state(tree: Tree) -> dict[str, object]:
    other = {"attempts", "model_calls", "model_facts", "_table", "_graph", "_gains", *tree.COLUMNS}
    fields = {name: value for name, value in vars(tree).items() if name not in other}
    return copy.deepcopy(fields) | {
        "columns": {name: getattr(tree, name).tolist() for name in tree.COLUMNS},
        "attempts": copy.deepcopy(vars(tree.attempts)),
        "spend": tree.spend,
        "spend_by": tree.spend_by,
        "open": dict(tree.model_calls.open),
        "cut": dict(tree.model_calls.cut),
        "facts": copy.deepcopy(vars(tree.model_facts)),
    }


@pytest.mark.slow
@given(histories(), st.data())
@settings(max_examples=60, deadline=None)
def test_fold_of_a_prefix_then_the_rest_is_the_fold_of_all(events: list[Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    tree = applied(events[:cut])
    for seq, event in enumerate(events[cut:], cut + 1):
        tree.apply(Recorded(seq, float(seq), event))
    assert state(tree) == state(applied(events))


@pytest.mark.slow
@given(histories())
@settings(max_examples=60, deadline=None)
def test_clade_is_the_sum_over_the_descendants_that_networkx_finds(events: list[Event]) -> None:
    tree = applied(events)
    graph = to_networkx(tree)
    for agent in tree.agents:
        members = {agent.id, *networkx.descendants(graph, agent.id)}
        assert tree.clade(agent.id) == sum((tree.own(AgentId(member)) for member in members), Tally())
        assert set(tree.ancestors(agent.id)) == networkx.ancestors(graph, agent.id)
        assert list(tree.ancestors(agent.id)) == sorted(tree.ancestors(agent.id), reverse=True)


@pytest.mark.slow
@given(histories())
@settings(max_examples=60, deadline=None)
def test_clade_of_the_seed_is_everything(events: list[Event]) -> None:
    tree = applied(events)
    assert tree.clade(AgentId(0)).n == tree.evaluations
    verdicts = [event.outcome.verdict for event in events if isinstance(event, TaskGraded)]
    gone = [event.verdict for event in events if isinstance(event, VerdictWithdrawn)]
    resolved = verdicts.count(Verdict.RESOLVED) - gone.count(Verdict.RESOLVED)
    assert tree.clade(AgentId(0)).resolved == resolved


@pytest.mark.slow
@given(histories())
@settings(max_examples=60, deadline=None)
def test_the_balance_of_flips_is_what_a_count_over_all_tasks_gives(events: list[Event]) -> None:
    tree = applied(events)
    counted = [sum(tree.flip(agent.id, task) for task in TASKS) for agent in tree.agents]
    assert list(tree.flip_balance) == (counted if tree.counts_flips else [0] * len(tree.agents))


@pytest.mark.slow
@given(histories())
@settings(max_examples=40, deadline=None)
def test_reading_never_writes(events: list[Event]) -> None:
    tree = applied(events)
    before = state(tree)
    for agent in tree.agents:
        for read in (tree.own, tree.clade, tree.children, tree.depth, tree.tried, tree.verdicts):
            read(agent.id)
        list(tree.ancestors(agent.id))
        tree.verdict(agent.id, TaskId("never heard of"))
    for action in range(30):
        tree.tries(ActionId(action))
        tree.spend_of(ActionId(action))
    assert (tree.pending, tree.to_redo(), tree.stillborn, tree.wall_seconds) is not None
    assert state(tree) == before


@pytest.mark.slow
@given(histories(), st.data())
@settings(max_examples=40, deadline=None)
def test_stored_events_come_back_and_fold_the_fast_way_to_the_same(
    events: list[Event], data: st.DataObject
) -> None:
    calls: set[tuple[int, int]] = set()
    assert isinstance(events[0], RunStarted)
    unique = [e for e in events if not (isinstance(e, ModelCalled) and _seen(calls, (e.action, e.number)))]
    again = RunStarted(Budget(evaluations=20), TASKS, True, events[0].flips)
    unique.insert(data.draw(st.integers(1, len(unique))), again)
    # The host's clock may be set back, within a session and between two.
    times = data.draw(st.lists(st.integers(1, 50), min_size=len(unique), max_size=len(unique)))
    with tempfile.TemporaryDirectory() as folder:
        ticks = iter(times)
        with Log.open(Path(folder, "e.db"), write=True, clock=lambda: float(next(ticks))) as store:
            store.append_many(unique)
            assert [decode(encode(event)) for event in unique] == [item.event for item in store.read()]
            fast = Tree()
            with fast.many():
                for recorded in store.read():
                    fast.apply(recorded)
    slow = Tree()
    for seq, (at, event) in enumerate(zip(times, unique, strict=True), 1):
        slow.apply(Recorded(seq, float(at), decode(encode(event))))
    assert state(fast) == state(slow)


def _seen(known: set[tuple[int, int]], key: tuple[int, int]) -> bool:
    if key in known:
        return True
    known.add(key)
    return False

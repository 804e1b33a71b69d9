"""Every decision of a run comes out the same when it is asked again; what was changed is named."""

import dataclasses
import sqlite3
from contextlib import closing

import pytest
from msgspec import structs

from dgm.analysis.budgets import Reason
from dgm.api.replaying import replay
from dgm.archive.events import ActionStarted, RunStarted, RunStopped, TaskGraded, TasksChanged, encode
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import AgentId, Budget, Entry, Evaluate, Expand, Verdict
from dgm.errors import UserError
from dgm.evaluation.control import HoldoutSchedule
from dgm.evaluation.schedule import Schedule, enter
from dgm.replay.decisions import decide_again, replay_decisions
from tests.support.runs.replayed import TASKS, MadeUp, killed_session, session
from tests.support.runs.trees import named

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        yield made


def starts(run):
    return [item for item in run.store.read() if isinstance(item.event, ActionStarted)]


class Hopeless(MadeUp):
    """Agents resolve the first half of the tasks and never the others."""

    async def perform(self, action, what):
        outcome = await super().perform(action, what)
        if isinstance(what, Evaluate):
            verdict = Verdict.RESOLVED if what.task < TASKS[4] else Verdict.UNRESOLVED
            return dataclasses.replace(outcome, verdict=verdict)
        return outcome


@pytest.mark.parametrize(("policy", "start"), [("hgm", 3), ("lineage", 3), ("hgm", 7)])
def test_a_curriculum_changes_its_tasks_alike_after_a_resume_and_in_a_replay(run, policy, start):
    # From a pool of one task, a task that was put back is drawn at once.
    settings = Settings(seed=5, workers=4, curriculum={"start": start, "agents": 2})
    session(run, named(policy), settings, Hopeless(run), evaluations=25, agents=6)
    session(run, named(policy), settings, Hopeless(run, seed=1), evaluations=50, agents=9)
    changes = [item for item in run.store.read() if isinstance(item.event, TasksChanged)]
    assert len(changes) > 3
    assert {task for item in changes for task in item.event.solved} <= {*TASKS[:4]}
    found = replay_decisions(run, named(policy), settings)
    assert (found.differing, found.first) == (0, None)
    other = replay_decisions(run, named(policy), settings.model_copy(update={"seed": 6}))
    assert (other.first.seq, other.first.did) == (changes[0].seq, changes[0].event)


class Remembers:
    """Decides by what it has observed: the tree is not asked."""

    name = "remembers"
    keeps_state = True

    def __init__(self):
        self.heard = []

    def next(self, tree, rng):
        graded = sum(isinstance(item.event, TaskGraded) for item in self.heard)
        if graded % 3 == 2 and not any(isinstance(what, Expand) for what in tree.pending.values()):
            return Expand((AgentId(0),), "self-edit")
        for agent in reversed(tree.agents):
            for task in tree.tasks:
                if task not in tree.tried(agent.id):
                    return Evaluate(agent.id, task)
        return None

    def observe(self, event):
        assert event.seq == len(self.heard) + 1
        self.heard.append(event)


@pytest.mark.parametrize(("name", "decisions"), [("example", 71), ("real-example", 21)])
def test_shipped_runs_decide_the_same_again(name, decisions):
    view = replay(name, on_progress=None)
    assert (view.asked, view.differing) == (decisions, 0)


@pytest.mark.parametrize("policy", ["hgm", "random"])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_troubled_run_decides_the_same_again(run, policy, workers):
    settings = Settings(seed=5, workers=workers, limits={"tries": 2})
    session(run, named(policy), settings, MadeUp(run, trouble=0.2), evaluations=20, agents=6)
    killed = MadeUp(run, seed=1, trouble=0.1)
    run.append(RunStarted(Budget(evaluations=40, agents=12), TASKS, resumed=True))
    killed_session(run, named(policy), settings, killed, after=12)
    session(run, named(policy), settings, MadeUp(run, seed=2, trouble=0.1), evaluations=45, agents=9)
    found = replay_decisions(run, named(policy), settings)
    fresh = [item for item in starts(run) if not item.event.again]
    assert len(fresh) < len(starts(run))
    assert (found.differing, found.first) == (0, None)
    assert found.asked == len(fresh)


def test_a_policy_with_state_hears_every_event_before_it_is_asked(run):
    settings = Settings(workers=3)
    session(run, Remembers(), settings, MadeUp(run, trouble=0.1), evaluations=12)
    session(run, Remembers(), settings, MadeUp(run, seed=1), evaluations=20)
    assert replay_decisions(run, Remembers(), settings).differing == 0


def test_an_end_with_nothing_left_is_a_decision_too(run):
    settings = Settings(workers=2)
    over = session(run, named("random"), settings, MadeUp(run), evaluations=500, agents=3)
    assert over.reason is Reason.NOTHING_LEFT
    found = replay_decisions(run, named("random"), settings)
    assert found.asked == len(starts(run)) + 1
    assert found.differing == 0


def test_an_end_that_came_too_early_is_named(run):
    settings = Settings(workers=1)
    session(run, named("hgm"), settings, MadeUp(run), evaluations=5)
    run.append(RunStarted(Budget(evaluations=9), TASKS, resumed=True))
    stopped = run.append(RunStopped(Reason.NOTHING_LEFT.value))
    found = replay_decisions(run, named("hgm"), settings)
    assert found.differing == 1
    assert (found.first.seq, found.first.did) == (stopped.seq, None)
    assert found.first.says is not None


def test_another_seed_leads_to_a_first_difference(run):
    session(run, named("hgm"), Settings(seed=1), MadeUp(run), evaluations=20)
    found = replay_decisions(run, named("hgm"), Settings(seed=2))
    assert found.differing > 0
    event = next(item for item in starts(run) if item.seq == found.first.seq).event
    assert (event.id, event.action) == (found.first.action, found.first.did)
    assert found.first.says != found.first.did


def test_other_evidence_is_a_difference_of_its_own(run):
    session(run, named("hgm"), Settings(), MadeUp(run), evaluations=30)
    found = replay_decisions(run, named("hgm"), Settings(evidence={"failures": 1}))
    assert found.first.did.parents == found.first.says.parents
    assert found.first.did.evidence != found.first.says.evidence


def test_a_decision_that_was_forged_is_the_first_that_differs(run):
    session(run, named("hgm"), Settings(workers=1), MadeUp(run), evaluations=20)
    forged = next(item for item in starts(run)[6:] if isinstance(item.event.action, Evaluate))
    with closing(sqlite3.connect(run.folder / "run.db")) as log, log:
        log.execute("DROP TRIGGER events_are_never_changed")
        what = structs.replace(forged.event.action, task="task-forged")
        body = encode(structs.replace(forged.event, action=what)).decode()
        log.execute("UPDATE events SET body = ? WHERE seq = ?", (body, forged.seq))
    found = replay_decisions(run, named("hgm"), Settings(workers=1))
    assert found.first.seq == forged.seq
    assert found.first.did.task == "task-forged"
    assert found.first.says == forged.event.action


@pytest.mark.parametrize("kind", ["holdout", "replay"])
def test_an_evaluation_outside_of_a_search_is_asked_as_one(tmp_path, kind):
    plan = {"what": "evaluations", "commits": {"7": "ab"}, "pairs": [[7, task] for task in TASKS[:3]]}
    config = {"settings": Settings(model="offline").model_dump(mode="json"), "plan": plan}
    # The previous version told a holdout evaluation by its folder alone.
    with Run.create(tmp_path / kind, config | ({"kind": kind} if kind == "replay" else {})) as run:
        run.append(RunStarted(Budget(), TASKS))
        agent = enter(run, "ab", lambda: {"agent.py": Entry(b"candidate")})
        pairs = [Evaluate(agent, task) for task in TASKS[:3]]
        policy = HoldoutSchedule() if kind == "holdout" else Schedule(lambda _: pairs)
        over = session(run, policy, Settings(), MadeUp(run, trouble=0.2))
        assert over.reason is Reason.NOTHING_LEFT
        assert (run.tree.agents[agent].key, run.tree.agents[agent].rationale) == ("ab", "")
        found = decide_again(run)
        assert (found.asked, found.differing) == (len(TASKS if kind == "holdout" else pairs) + 1, 0)
        assert replay_decisions(run, named("hgm"), Settings()).differing > 0


@pytest.mark.parametrize("key", ["evaluation", "replay"])
def test_runs_without_decisions_are_refused(tmp_path, key):
    """As the previous version marked them; the replay is of a lineage, which other models make no longer."""
    config = {"settings": Settings(model="offline").model_dump(mode="json"), key: {"what": "lineage"}}
    with Run.create(tmp_path / "run", config) as run, pytest.raises(UserError):
        decide_again(run)

"""What is left out of an agent's requests is noted once for each agent of a run, and counts as no refusal."""

import pytest

from dgm.archive.events import CallRefused
from dgm.config import Settings
from dgm.domain import SEED, ActionId, AgentId, Budget, Entry, Evaluate, TaskId
from dgm.gateway.allowed import LEFT_OUT
from dgm.gateway.journal import RunJournal
from dgm.views.run import FailuresView
from tests.support.runs.builder import RunBuilder, create_run, make_config

pytestmark = pytest.mark.starts_processes


def started(folder):
    return create_run(folder / "run", make_config(Settings()), Budget(), [TaskId("a"), TaskId("b")])


def notes(run):
    return [item.event.message for item in run.store.read() if isinstance(item.event, CallRefused)]


def test_each_agent_is_noted_once_also_after_a_resume(tmp_path):
    with started(tmp_path) as run:
        made, told = RunBuilder(run), []
        made.bear({"agent.toml": Entry(b"[agent]\n")})
        made.bear({"agent.toml": Entry(b"[agent]\nb = 1\n")}, (SEED,))
        one = made.begin(Evaluate(SEED, TaskId("a")))
        two = made.begin(Evaluate(SEED, TaskId("b")))
        other = made.begin(Evaluate(AgentId(1), TaskId("a")))
        for _ in range(2):
            journal = RunJournal(run, told.append)
            for action in (one, two, other, one):
                journal.refuse(action, "solve", 200, LEFT_OUT, "client_metadata")
            journal.refuse(one, "solve", 200, LEFT_OUT, "mood")
        assert notes(run) == ["agent 0: client_metadata", "agent 1: client_metadata", "agent 0: mood"]
        assert len(told) == 3
        assert (run.tree.refusals, FailuresView.load(run).refused) == (0, ())


def test_a_refusal_is_recorded_each_time(tmp_path):
    with started(tmp_path) as run:
        RunBuilder(run).bear({"agent.toml": Entry(b"[agent]\n")})
        journal = RunJournal(run)
        for _ in range(2):
            journal.refuse(ActionId(1), "solve", 400, "unsupported_tool", "no")
        assert (notes(run), run.tree.refusals) == (["no", "no"], 2)

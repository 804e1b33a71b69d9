"""What a policy asks for that makes no sense is refused before anything of it is written down."""

import asyncio
import sys

import pytest

from dgm.analysis.budgets import Reason
from dgm.archive.events import ActionStarted
from dgm.cli.complaint import FAILED, USAGE, complain
from dgm.config import Settings
from dgm.domain import AgentId, Evaluate, Expand, TaskId
from dgm.errors import UserError
from dgm.policies.registry import open_policy
from dgm.protocols import Needs
from dgm.search.loop import Search
from dgm.search.prepare import RunController
from tests.support.runs.trees import TASKS
from tests.unit.search.test_loop import FakeWorker, events, run, start  # noqa: F401  (``run`` is a fixture)


class Answers:
    """A policy that answers what it was given."""

    name = "odd"
    keeps_state = False

    def __init__(self, *answers):
        self.answers = list(answers)

    def observe(self, event):
        pass

    def next(self, tree, rng):
        return self.answers.pop(0)


def asked(run, *answers):  # noqa: F811
    start(run, 50)
    settings, controller = Settings(workers=1), RunController(run, Settings(), {"self-edit": Needs()})
    return asyncio.run(Search(controller, Answers(*answers), FakeWorker(run), settings).go())


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Evaluate(AgentId(7), TASKS[0]), "agent 7, and there are the agents 0 to 0"),
        (Evaluate(AgentId(-1), TASKS[0]), "agent -1"),
        (Evaluate(AgentId(0), TaskId("nope")), "the task 'nope', which the benchmark does not have"),
        (Expand((AgentId(7),), "self-edit"), "agent 7"),
        (Expand((), "self-edit"), "a child without a parent"),
        (Expand((AgentId(0),), "nope"), "the operator 'nope', and the run has self-edit"),
        ("expand", "'expand', which is no Expand"),
    ],
)
def test_nonsense_is_one_line_and_nothing_is_written_down(run, answer, said):  # noqa: F811
    with pytest.raises(UserError) as raised:
        asked(run, answer)
    assert said in str(raised.value)
    assert complain(raised.value) == USAGE
    assert not events(run, ActionStarted)


@pytest.mark.starts_processes
def test_a_task_is_not_evaluated_twice_as_if_for_the_first_time(run):  # noqa: F811
    with pytest.raises(UserError, match=f"task {TASKS[0]} of agent 0 again"):
        asked(run, *[Evaluate(AgentId(0), TASKS[0])] * 2)
    assert len(events(run, ActionStarted)) == 1


@pytest.mark.starts_processes
def test_a_policy_that_names_nothing_is_said_to(run):  # noqa: F811
    over = asked(run, None)
    assert (over.reason, over.message) == (Reason.NOTHING_LEFT, "the policy odd names nothing more to do")


PACKAGE = """
class Half:
    name = "half"

class Broken:
    def __init__(self, kit):
        kit.nothing

class Deaf:
    def decide(self, view):
        pass
"""
MODULES = {"odd_plugin": PACKAGE, "odd_zero": "\n1 / 0\n", "odd_exits": "raise SystemExit(3)\n"}
POINTS = """[dgm.policies]
half = odd_plugin:Half
broken = odd_plugin:Broken
deaf = odd_plugin:Deaf
zero = odd_zero:x
absent = odd_absent:x
exits = odd_exits:x
"""


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    """An installed package with policies that are none."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    made = tmp_path / "odd_plugin-1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-plugin\nVersion: 1\n")
    (made / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("half", "Half has no decide"),
        ("zero", r"cannot be loaded: .*/odd_zero\.py:2: ZeroDivisionError: division by zero"),
        ("absent", "cannot be loaded: ModuleNotFoundError: No module named 'odd_absent'"),
        ("exits", r"cannot be loaded: .*/odd_exits\.py:1: SystemExit: 3"),
        ("deaf", r"odd_plugin\.py:\d+: Deaf\.decide must take 2 arguments"),
    ],
)
def test_a_plug_in_that_is_no_policy_is_one_line(plugged, name, said):
    with pytest.raises(UserError, match=said):
        open_policy(Settings(policy={"name": name}))


def test_a_fault_in_a_plug_in_is_not_called_one_of_dgm(plugged, capsys):
    with pytest.raises(AttributeError) as raised:
        open_policy(Settings(policy={"name": "broken"}))
    assert complain(raised.value) == FAILED
    assert "a fault of a plug-in: package 'odd_plugin', " in capsys.readouterr().err
    assert complain(ValueError("odd")) == FAILED
    assert "a fault of dgm itself: ValueError: odd" in capsys.readouterr().err

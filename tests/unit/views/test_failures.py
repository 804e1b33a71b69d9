"""What went wrong is counted by kind."""

from pathlib import Path

import pytest

from dgm.archive.events import ActionLost, ActionStarted, AgentStillborn, CallRefused, TaskGraded
from dgm.domain import SEED, Evaluate, Evaluation, Expand, Stillborn, TaskId, Verdict
from dgm.views.run import MOST_REASONS, FailuresView, _kind_of_reason
from tests.support.runs.packable import begin

pytestmark = pytest.mark.starts_processes


def test_failures_are_counted_by_kind_the_commonest_first(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        for stage in ("check", "vet", "vet"):
            action = run.tree.next_action
            run.append(ActionStarted(action, Expand((SEED,), "module")))
            run.append(AgentStillborn(action, Stillborn((SEED,), "module", stage, "no")))
        for reason in ("took 31 s", "took 7 s", "no\nspace"):
            action = run.tree.next_action
            run.append(ActionStarted(action, Evaluate(SEED, TaskId(f"t{action}"))))
            outcome = Evaluation(SEED, TaskId(f"t{action}"), 0, Verdict.INVALID, reason)
            run.append_many([TaskGraded(action, outcome), CallRefused(action, "solve", 400, "bad", "no")])
            run.append(ActionLost(action, "killed 9", final=True))
        action = run.tree.next_action
        run.append(ActionStarted(action, Evaluate(SEED, TaskId("a"))))
        run.append(
            TaskGraded(action, Evaluation(SEED, TaskId("a"), 0, Verdict.UNRESOLVED, "half \ud800 a pair"))
        )
        view = FailuresView.load(run)
    assert [(dead.operator, dead.stage, dead.times) for dead in view.stillborn] == [
        ("module", "vet", 2),
        ("module", "check", 1),
    ]
    assert [(count.reason, count.times) for count in view.invalid] == [("took # s", 2), ("no space", 1)]
    assert [(count.reason, count.times) for count in view.lost] == [("killed #", 3)]
    assert [(count.reason, count.times) for count in view.refused] == [("bad", 3)]
    assert [count.times for count in view.unresolved] == [1]


def test_rare_reasons_are_counted_together(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        for number in range(MOST_REASONS + 3):
            action = run.tree.next_action
            run.append(ActionStarted(action, Evaluate(SEED, TaskId("t"))))
            run.append(ActionLost(action, f"reason {chr(97 + number)}", final=True))
        lost = FailuresView.load(run).lost
    assert len(lost) == MOST_REASONS + 1
    assert (lost[-1].reason, lost[-1].times) == ("others", 3)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("container 4f2a9c0b1d died after 12.5 s", "container # died after #.# s"),
        ("took 3 s\n\nand 4", "took # s and #"),
        ("deadbeef is a word, and so is decade", "deadbeef is a word, and so is decade"),
        ("3 of 8 tests fail: test_a, Test > b: c …", "# of # tests fail"),
        (
            "1 of 2 tests that must pass fail (a (x.Y): failed, …); 2 of 9 tests that passed are broken (b[1]: e)",
            "# of # tests that must pass fail; # of # tests that passed are broken",
        ),
        (
            "2 of 2 tests still fail; the tests of tests.test_hidden_east ended early (exit status 1)",
            "# of # tests still fail; the tests of a module ended early (exit status #)",
        ),
        ("tampering: tests.test_hidden.A.test_b must fail and is passed, 2 more", "tampering"),
        (
            "1 of 2 tests still fail; tampering: a test added to tests.t must fail and is passed; a note",
            "# of # tests still fail; tampering; a note",
        ),
        ("the tests did not end within 60 s", "the tests did not end within # s"),
    ],
)
def test_a_kind_of_reason_has_no_numbers_and_no_names_of_tests(reason: str, kind: str) -> None:
    assert _kind_of_reason(reason) == kind

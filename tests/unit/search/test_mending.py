"""What a resume may change in a run, and which verdicts it takes back."""

import pytest

from dgm.archive.events import (
    CallRefused,
    RunChanged,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.run import Run, diff_tables, evaluations_of, format_assignments, merge_tables
from dgm.config import Settings, resolve
from dgm.domain import SEED, ActionId, Evaluate, Evaluation, Expand, Usage, Verdict
from dgm.errors import ArchiveCorrupt
from dgm.messages import Message, Reply, Request, Role
from dgm.replay.again import find_graded
from dgm.search.start import (
    change_event,
    current_settings_at,
    group_by_settings,
    settings_of,
    withdraw_refused_verdicts,
)
from dgm.views.report import read_reproduction
from dgm.views.tasks import TaskView
from tests.support.runs.paid import TASKS, PaidRun

pytestmark = pytest.mark.slow

ANSWERED, REFUSED = "", "invalid_request"


@pytest.fixture
def paid(tmp_path):
    made = PaidRun(tmp_path / "run")
    yield made
    made.run.close()


def evaluated(paid, task, *answers, verdict=Verdict.UNRESOLVED, told=True):
    """An evaluation whose calls were answered or refused like this, from its start to its verdict."""
    run = paid.run
    action = paid.start(Evaluate(SEED, TASKS[task]))
    for number, error in enumerate(answers, 1):
        reply = Reply("no temperature" if error else "yes", error=error)
        paid.record_exchange(
            action, number, Request((Message(Role.USER, f"{number}"),)), reply, usage=Usage(1)
        )
        if error and told:
            run.append(CallRefused(action, "solve", 400, error, "no temperature"))
    paid.grade(action, SEED, task, verdict)
    return action


# Which verdicts


@pytest.mark.parametrize(
    ("answers", "void"),
    [
        ((REFUSED,), (1,)),
        ((REFUSED, REFUSED), (1, 2)),
        ((ANSWERED, REFUSED), (2,)),
        ((REFUSED, ANSWERED), None),
        ((ANSWERED,), None),
        ((), None),
        (("context_length_exceeded",), None),
        (("content_filter",), None),
    ],
)
def test_a_verdict_is_taken_back_where_no_call_was_answered_after_a_refusal(paid, answers, void):
    action = evaluated(paid, 0, *answers)
    found = withdraw_refused_verdicts(paid.run)
    assert [event.calls for event in found] == ([void] if void else [])
    for event in found:
        assert (event.action, event.what) == (action, Evaluate(SEED, TASKS[0]))
        assert event.reason == "refused invalid_request: no temperature"


def test_what_was_resolved_or_refused_by_the_gateway_itself_stays(paid):
    evaluated(paid, 0, REFUSED, verdict=Verdict.RESOLVED)
    action = paid.start(Evaluate(SEED, TASKS[1]))
    paid.refused(action)
    paid.grade(action, SEED, 1, Verdict.UNRESOLVED)
    assert withdraw_refused_verdicts(paid.run) == []


def test_a_verdict_is_taken_back_once_for_each_time_that_it_was_given(paid):
    action = evaluated(paid, 0, REFUSED)
    paid.run.append_many(withdraw_refused_verdicts(paid.run))
    assert withdraw_refused_verdicts(paid.run) == []
    what = Evaluate(SEED, TASKS[0])
    paid.again(action, what)
    paid.run.append(TaskGraded(action, Evaluation(SEED, what.task, 0, Verdict.UNRESOLVED, "tests fail"), 1))
    assert withdraw_refused_verdicts(paid.run) == []


# What it means


def test_a_withdrawn_verdict_counts_nowhere_until_it_is_given_again(paid):
    evaluated(paid, 1, ANSWERED, verdict=Verdict.RESOLVED)
    action = evaluated(paid, 0, REFUSED, ANSWERED, REFUSED)
    run, what = paid.run, Evaluate(SEED, TASKS[0])
    run.append_many(withdraw_refused_verdicts(run))
    tree = run.tree
    assert (tree.evaluations, tree.own(SEED).n, tree.clade(SEED).n) == (1, 1, 1)
    assert tree.verdict(SEED, what.task) is None
    assert dict(tree.to_redo()) == {action: what}
    assert tree.void_calls(action) == {1, 3}
    assert action not in evaluations_of(run, SEED)
    assert TaskView.load(run, what.task).attempts == ()
    assert run.store.query("SELECT task FROM evaluations") == [(TASKS[1],)]
    assert len(find_graded(run)) == 1
    paid.again(action, what)
    run.append(TaskGraded(action, Evaluation(SEED, what.task, 0, Verdict.RESOLVED, "mended"), 1))
    assert (tree.evaluations, tree.own(SEED).resolved) == (2, 2)
    assert evaluations_of(run, SEED)[action].reason == "mended"
    with Run.open(run.folder) as again:
        assert again.tree.own(SEED) == tree.own(SEED)
        assert again.tree.void_calls(action) == tree.void_calls(action)


def test_what_was_known_before_is_still_what_an_older_expansion_was_shown(paid):
    action = evaluated(paid, 0, REFUSED)
    expansion = paid.start(Expand((SEED,), "self-edit", (action,)))
    paid.run.append_many(withdraw_refused_verdicts(paid.run))
    later = paid.start(Expand((SEED,), "self-edit"))
    assert list(evaluations_of(paid.run, SEED, before=expansion)) == [action]
    assert not evaluations_of(paid.run, SEED, before=later)


def test_a_verdict_that_is_not_there_cannot_be_withdrawn(paid):
    gone = VerdictWithdrawn(ActionId(7), 3, Evaluate(SEED, TASKS[0]), Verdict.UNRESOLVED, "")
    with pytest.raises(ArchiveCorrupt, match="action 7 has no verdict unresolved"):
        paid.run.append(gone)


def test_settings_are_the_frozen_ones_and_what_was_changed_in_order(paid):
    run, before = paid.run, settings_of(paid.run)
    first = evaluated(paid, 0)
    after = resolve(None, ["models.solve=offline", "limits.calls=7"], {"model": "openai/cheap"})
    event = change_event(Settings(model="openai/cheap"), after)
    assert event == RunChanged({"models": {"solve": "offline"}, "limits": {"calls": 7}})
    changed = run.append(event)
    run.append(RunChanged({"limits": {"calls": 9}, "benchmark": "/moved", "sandbox": "docker"}))
    second = evaluated(paid, 1)
    assert settings_of(run, changed.seq - 1) == before
    assert (settings_of(run, changed.seq).limits.calls, settings_of(run).limits.calls) == (7, 9)
    assert settings_of(run).models.improve == before.models.improve
    assert (run.sandbox(changed.seq), run.sandbox()) == ("bubblewrap", "docker")
    (then, one), (now, other) = group_by_settings(run, [second, first])
    assert (one, other) == ([first], [second])
    assert current_settings_at(run, then).limits == before.limits
    assert current_settings_at(run, then).benchmark == "/moved"
    assert current_settings_at(run, now).limits.calls == 9


def test_nothing_changed_is_no_event():
    assert change_event(Settings(), Settings()) is None


def test_a_difference_is_what_makes_the_one_of_the_other():
    before = {"a": {"b": 1, "c": [1, 2]}, "d": None, "e": {}}
    after = {"a": {"b": 2, "c": [1, 2]}, "d": {"x": 1}, "e": {"new/name.1": 3}}
    found = diff_tables(before, after)
    assert found == {"a": {"b": 2}, "d": {"x": 1}, "e": {"new/name.1": 3}}
    assert merge_tables(before, found) == after
    assert before["a"]["b"] == 1
    assert format_assignments(found) == ["a.b = 2", "d.x = 1", 'e."new/name.1" = 3']


def test_a_report_says_what_was_changed_beside_the_command_of_before(paid):
    paid.run.append(RunChanged({"limits": {"calls": 7}, "benchmark": "/moved"}))
    found = read_reproduction(paid.run, SEED)
    assert list(found.changed) == ["limits.calls = 7", 'benchmark = "/moved"']
    assert "--benchmark starter" in found.command
    assert "limits" not in found.command

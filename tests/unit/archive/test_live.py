"""Files beside a log about the moment: the live state, requests to stop, and checks of models that were begun."""

import json

import pytest

from dgm.archive.cleanup import is_own_part
from dgm.archive.live import (
    CHECKS_FILE,
    LIVE_FILE,
    LiveCalls,
    LiveState,
    NodeState,
    begin_checks,
    end_checks,
    find_cut_checks,
    read_earlier_checks,
    read_live,
    read_stop_request,
    remove_live,
    stop_run,
    write_live,
)
from dgm.archive.lock import STOP_FILE, WriterLock
from dgm.archive.run import Run
from dgm.archive.tree import CHECK_ROLE
from dgm.config import Settings
from dgm.domain import Usage
from dgm.errors import ArchiveCorrupt, UserError
from dgm.protocols import Checked
from dgm.search.start import note_checks, worst_of_checks
from dgm.views.run import view_cut_calls
from tests.support.runs.paid import PaidRun

STATES = (
    LiveState(LiveCalls(2, 1, 1700000000.5)),
    LiveState(LiveCalls(0, 1, 0.0)),
    LiveState(LiveCalls(0, 0, None), (NodeState("ssh://a", 8, 3, 40, 1, 2, "no answer"),)),
)


def test_a_state_is_read_as_it_was_written_and_gone_when_removed(tmp_path):
    for state in STATES:
        write_live(tmp_path, state)
        assert read_live(tmp_path) == state
    assert [is_own_part(path) for path in tmp_path.iterdir()] == [True]
    for _ in range(2):
        remove_live(tmp_path)
        assert read_live(tmp_path) == LiveState()
    with pytest.raises(OSError, match="No such file"):
        write_live(tmp_path / "gone", STATES[0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"calls": {"under_way": 1, "waiting": 1, "oldest_wait": NaN}}',
        '{"calls": {"under_way": 1, "waiting": 1, "oldest_wait": 1e300}}',
        '{"calls": {"under_way": 1, "waiting": 1, "oldest_wait": -0.5}}',
        '{"calls": {"under_way": "x", "waiting": 1, "oldest_wait": null}}',
        '{"nodes": [{}]}',
    ],
)
def test_what_dgm_did_not_write_is_no_state(tmp_path, text):
    (tmp_path / LIVE_FILE).write_text(text)
    assert read_live(tmp_path) == LiveState()


# Requests to stop


@pytest.fixture
def held(tmp_path):
    lock = WriterLock(tmp_path / "run.lock")
    yield lock
    lock.close()


@pytest.mark.parametrize("now", [False, True])
def test_the_second_request_means_at_once(held, tmp_path, now):
    assert read_stop_request(tmp_path) is None
    stop_run(tmp_path, now=now)
    assert read_stop_request(tmp_path) is now
    stop_run(tmp_path)
    assert read_stop_request(tmp_path) is True


def test_a_request_holds_for_one_writer_only(held, tmp_path):
    stop_run(tmp_path)
    killed = (tmp_path / STOP_FILE).read_bytes()
    held.close()
    assert read_stop_request(tmp_path) is None
    assert stop_run(tmp_path) is None
    (tmp_path / STOP_FILE).write_bytes(killed)
    again = WriterLock(tmp_path / "run.lock")
    assert read_stop_request(tmp_path) is None
    again.close()


def test_a_process_in_another_container_is_asked_too(held, tmp_path):
    lock = tmp_path / "run.lock"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {"pids": "other", "host": "box"}))
    holder = stop_run(tmp_path)
    assert (holder.host, holder.is_reachable) == ("box", False)
    assert read_stop_request(tmp_path) is False


def test_a_request_that_cannot_be_written_says_who_can(held, tmp_path):
    (tmp_path / STOP_FILE).mkdir()
    with pytest.raises(UserError, match=f"stop {tmp_path.name} as the user who runs it"):
        stop_run(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"now": "yes"', "null"])
def test_a_file_of_something_else_asks_for_nothing(tmp_path, text):
    (tmp_path / STOP_FILE).write_text(text)
    assert read_stop_request(tmp_path) is None


# Checks of models that a kill cuts off before a session begins are counted by the next session.

NAME = "openai-compatible/m"
PRICED = {"models": {"prices": {NAME: {"input": 1, "output": 10}}}, "model": NAME}
SETTINGS = Settings.model_validate(PRICED)
WORST = Usage(1, 4000, 16000, pytest.approx(0.164))
CHECKED = [Checked(NAME, {}, (), Usage(1, 30, 4))]


@pytest.fixture
def paid(tmp_path):
    return PaidRun(tmp_path / "r")


@pytest.mark.starts_processes
def test_a_check_that_ended_leaves_nothing_behind(paid):
    begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    note_checks(paid.run, SETTINGS, CHECKED)
    assert find_cut_checks(paid.run.folder) == []
    assert paid.run.tree.spend_by[CHECK_ROLE, NAME] == Usage(1, 30, 4, 70e-6)


@pytest.mark.starts_processes
def test_a_check_that_was_cut_off_is_counted_once_at_its_worst_case(paid):
    for _ in range(2):
        begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    assert find_cut_checks(paid.run.folder) == [(NAME, WORST)] * 2
    assert read_earlier_checks(paid.run.folder) == [(NAME, WORST)]
    for _ in range(2):
        note_checks(paid.run, SETTINGS, CHECKED)
    spent = paid.run.tree.spend_by[CHECK_ROLE, NAME]
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (3, 4060, 16008)
    assert isinstance(spent.input_tokens, int)


@pytest.mark.starts_processes
def test_a_check_that_was_refused_keeps_what_was_cut_off_before(paid):
    for _ in range(2):
        begin_checks(paid.run.folder, worst_of_checks(SETTINGS))
    end_checks(paid.run.folder, counted=False)
    assert view_cut_calls(paid.run) == []
    paid.run.close()
    with Run.open(paid.run.folder) as dead:
        (call,) = view_cut_calls(dead)
    assert (call.action, call.model, call.in_spend, call.tokens) == (0, NAME, False, 20_000)


def test_a_damaged_note_of_checks_is_named(tmp_path):
    (tmp_path / CHECKS_FILE).write_text('{"earlier": [["m", "x"]]}')
    with pytest.raises(ArchiveCorrupt, match=CHECKS_FILE):
        find_cut_checks(tmp_path)


def test_worst_case_of_a_check_has_the_limit_of_a_reply():
    priced = {NAME: {"input": 1, "output": 10, "max_output": 20_000}}
    more = Settings.model_validate({"models": {"prices": priced}, "model": NAME})
    less = more.model_copy(update={"limits": more.limits.model_copy(update={"output_tokens": 700})})
    assert [worst_of_checks(one)[NAME].output_tokens for one in (more, less)] == [20_000, 700]

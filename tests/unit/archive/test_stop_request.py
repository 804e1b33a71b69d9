"""Requests to stop, as files: whom they reach, and for how long they hold."""

import json

import pytest

from dgm.archive.lock import WriterLock
from dgm.archive.stop_request import read_stop_request, stop_run
from dgm.errors import UserError


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


def test_nobody_is_asked_where_nobody_writes(held, tmp_path):
    held.close()
    assert stop_run(tmp_path) is None
    assert read_stop_request(tmp_path) is None


def test_a_request_holds_for_one_writer_only(held, tmp_path):
    stop_run(tmp_path)
    killed = (tmp_path / "stop.json").read_bytes()
    held.close()
    assert read_stop_request(tmp_path) is None
    (tmp_path / "stop.json").write_bytes(killed)
    again = WriterLock(tmp_path / "run.lock")
    assert read_stop_request(tmp_path) is None
    again.close()


def test_a_process_in_another_container_is_asked_too(held, tmp_path):
    lock = tmp_path / "run.lock"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {"pids": "other", "host": "box"}))
    holder = stop_run(tmp_path)
    assert holder is not None
    assert (holder.host, holder.is_reachable) == ("box", False)
    assert read_stop_request(tmp_path) is False


def test_an_older_version_is_not_asked_in_vain(held, tmp_path):
    lock = tmp_path / "run.lock"
    record = json.loads(lock.read_text())
    del record["takes_requests"]
    lock.write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"an older version of dgm \(pid \d+ on .*end it there, with Ctrl-C"):
        stop_run(tmp_path)


def test_a_request_that_cannot_be_written_says_who_can(held, tmp_path):
    (tmp_path / "stop.json").mkdir()
    with pytest.raises(
        UserError, match=rf"cannot be written .*; stop {tmp_path.name} as the user who runs it"
    ):
        stop_run(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"now": "yes"', "null"])
def test_a_file_of_something_else_asks_for_nothing(tmp_path, text):
    (tmp_path / "stop.json").write_text(text)
    assert read_stop_request(tmp_path) is None

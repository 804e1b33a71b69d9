"""The process that a lock names: whether it can be asked about, and whether it can be signalled."""

import json
import os
import socket

import pytest

from dgm.archive.history import writer
from dgm.archive.lock import WriterLock
from dgm.archive.lock_holder import describe_this_process, parse_holder


def holder(**changes):
    return parse_holder(json.dumps(json.loads(describe_this_process()) | changes).encode())


def test_this_process_can_be_asked_about_and_signalled():
    assert holder() == (os.getpid(), socket.gethostname(), True, True, True)


def test_a_new_name_of_the_host_changes_nothing():
    assert holder(host="renamed")[2:4] == (True, True)


def test_before_a_new_start_of_the_machine_pids_were_others():
    assert holder(boot="before", pids="before/1")[2:4] == (False, True)


def test_another_container_of_this_boot_is_asked_about_but_not_signalled():
    assert holder(machine="container", pids="other")[2:4] == (False, True)


def test_another_machine_cannot_be_asked_about():
    assert holder(machine="other", boot="other", pids="other/1")[2:4] == (False, False)


@pytest.mark.parametrize("unknown", ["", None, 7])
def test_where_no_boot_is_known_none_is_the_same(unknown):
    assert holder(machine="other", boot=unknown, pids=unknown)[2:4] == (False, False)


@pytest.mark.parametrize(("host", "ours"), [(socket.gethostname(), True), ("elsewhere", False)])
def test_a_lock_of_an_older_version_names_only_the_host(host, ours):
    assert parse_holder(json.dumps({"pid": 7, "host": host}).encode()) == (7, host, ours, ours, False)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"pid": "x", "host": "h"}', b'{"pid": 1e999, "host": "h"}']
)
def test_what_names_nobody_is_refused(data):
    with pytest.raises(ValueError, match=r"^no holder of a lock"):
        parse_holder(data)


def test_a_run_in_another_container_lives_while_its_lock_is_held(tmp_path):
    lock = tmp_path / "run.lock"
    held = WriterLock(lock)
    elsewhere = json.loads(lock.read_text()) | {"machine": "other", "pids": "other", "host": "box"}
    lock.write_text(json.dumps(elsewhere))
    assert writer(tmp_path) == (os.getpid(), "box", False, True, True)
    held.close()
    assert writer(tmp_path) is None

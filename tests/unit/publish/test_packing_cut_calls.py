"""A pack carries the raw requests of calls, cut-off ones too, each over the renamed one that it builds on."""

import pytest

from dgm.archive.events import CallBooked, CallStarted, ModelCalled
from dgm.archive.journal import cut_calls, read_recorded_reply, read_recorded_request
from dgm.archive.run import Run
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt
from dgm.publish.packing import pack
from dgm.publish.unpacking import unpack
from dgm.publish.verifying import verify
from tests.support.runs.packable import ALICE, KEY, ask_raw, begin

SAID = f"{KEY} in /home/alice/x"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive" / "small"


def bodies(run):
    """All that was asked, as the requests of the log's events are read."""
    return [read_recorded_request(run, Digest(digest)).body for _, digest in named(run)]


def named(run):
    events = [one.event for one in run.store.read()]
    return [(type(each), each.request) for each in events if getattr(each, "request", "")]


@pytest.mark.starts_processes
def test_requests_come_back_with_what_must_not_be_published_replaced(folder, tmp_path):
    with begin(folder) as run:
        made = ask_raw(run, SAID)
        kinds = [kind for kind, _ in named(run)]
    assert kinds == [CallStarted, ModelCalled, CallStarted, CallBooked, CallStarted, CallStarted]
    pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as back:
        read = bodies(back)
        (cut,) = cut_calls(back, back.tree.next_action - 1)
        replied = next(one.event.reply for one in back.store.read() if isinstance(one.event, ModelCalled))
        content = read_recorded_reply(back, replied).content
    assert [len(body["messages"]) for body in read] == [1, 1, 3, 3, 5, 7]
    assert len(read[-1]["messages"]) == len(made[-1].body["messages"])
    assert cut.request.body == read[2]
    for secret in (KEY, "/home/alice"):
        assert secret not in str(read) and secret.encode() not in content
    assert verify(tmp_path / "back")["exchanges"] == 1


@pytest.mark.starts_processes
def test_run_without_secrets_comes_back_as_it_was(folder, tmp_path):
    with begin(folder) as run:
        ask_raw(run, "nothing of note")
        before = named(run), bodies(run)
    pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as back:
        assert (named(back), bodies(back)) == before


def test_lost_request_of_a_cut_off_call_is_found(folder):
    with begin(folder) as run:
        ask_raw(run, "nothing of note")
        (_, last) = named(run)[-1]
    (folder / "traces" / last[:2] / f"{last[2:]}.z").unlink()
    with pytest.raises(ArchiveCorrupt, match=last):
        verify(folder)

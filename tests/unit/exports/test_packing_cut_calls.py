"""A pack carries the raw requests of calls, cut-off ones too."""

import pytest

from dgm.archive.adopt import verify
from dgm.archive.events import CallBooked, CallStarted, ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.packed import unpack
from dgm.archive.run import Run
from dgm.errors import ArchiveCorrupt
from dgm.exports.pack import pack
from dgm.gateway.journal import RunJournal
from tests.support.runs.packable import ALICE, KEY, ask_raw, begin

SAID = f"{KEY} in /home/alice/x"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive" / "small"


def calls(run):
    """The events of calls, each with its request."""
    reader, kinds = CallReader(run.store), (CallBooked, CallStarted, ModelCalled)
    events = [one.event for one in run.store.read()]
    return [(each, reader.request(each).body) for each in events if isinstance(each, kinds)]


@pytest.mark.starts_processes
def test_requests_come_back_with_what_must_not_be_published_replaced(folder, tmp_path):
    with begin(folder) as run:
        made = ask_raw(run, SAID)
        kinds = [type(call) for call, _ in calls(run)]
    assert kinds == [CallStarted, ModelCalled, CallStarted, CallBooked, CallStarted, CallStarted]
    pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as back:
        read = [body for _, body in calls(back)]
        (cut,) = RunJournal(back).cut_calls(back.tree.next_action - 1)
        answered = next(call for call, _ in calls(back) if isinstance(call, ModelCalled))
        content = CallReader(back.store).reply(answered).content
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
        before = calls(run)
    pack(folder, tmp_path / "a.dgm", ALICE)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as back:
        assert calls(back) == before


@pytest.mark.starts_processes
def test_lost_request_of_a_cut_off_call_is_found(folder):
    with begin(folder) as run:
        ask_raw(run, "nothing of note")
        run.commit([], lambda log: log.execute("DELETE FROM calls WHERE number = 2"))
    with pytest.raises(ArchiveCorrupt, match="call 2: its request"):
        verify(folder)

"""Notices are delivered once each, wherever the process that delivers them is killed."""

from functools import partial
from threading import Event

import pytest

from dgm.archive.events import RunStopped
from dgm.config import NotifySettings
from dgm.errors import Infrastructure
from dgm.sinks import cursor, notify
from dgm.sinks.companion import deliver
from dgm.sinks.notices import Notice
from dgm.sinks.notify import CommandTarget, NotificationSink
from tests.support.runs.growing import Growing

ENDS = ("first", "second", "third")


class Killed(BaseException):
    """The process ends here."""


class Target:
    """Accepts notices until it is killed, before or after it accepts one."""

    key = "target"

    def __init__(self, accepted: list[Notice], dies_at: int, *, early: bool) -> None:
        self.accepted, self.dies_at, self.early = accepted, dies_at, early
        self.calls = 0

    def send(self, notice: Notice) -> None:
        self.calls += 1
        if self.early and self.calls == self.dies_at:
            raise Killed
        self.accepted.append(notice)
        if not self.early and self.calls == self.dies_at:
            raise Killed


@pytest.fixture
def folder(tmp_path):
    growing = Growing(tmp_path / "run")
    for reason in ENDS:
        growing.run.append(RunStopped(reason))
    growing.run.close()
    return tmp_path / "run"


def deliver_to(target: Target, folder) -> None:
    over = Event()
    over.set()
    deliver(folder, partial(NotificationSink, target, NotifySettings().events, 0), over)


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_a_process_that_is_killed_before_a_delivery_neither_repeats_nor_loses_a_notice(
    folder, dies_at
) -> None:
    accepted: list[Notice] = []
    with pytest.raises(Killed):
        deliver_to(Target(accepted, dies_at, early=True), folder)
    deliver_to(Target(accepted, 0, early=True), folder)
    deliver_to(Target(accepted, 0, early=True), folder)
    assert [notice.facts["message"] for notice in accepted] == [f"ended: {reason}" for reason in ENDS]


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_a_process_that_is_killed_before_its_note_repeats_that_notice_under_its_id(folder, dies_at) -> None:
    accepted: list[Notice] = []
    with pytest.raises(Killed):
        deliver_to(Target(accepted, dies_at, early=False), folder)
    deliver_to(Target(accepted, 0, early=False), folder)
    ids = [notice.facts["id"] for notice in accepted]
    assert len(ids) == len(ENDS) + 1
    assert ids[dies_at - 1] == ids[dies_at]
    assert len(set(ids)) == len(ENDS)


def test_a_torn_write_leaves_the_position_before(folder) -> None:
    position = cursor.Cursor(folder, "x")
    position.move(7)
    (folder / cursor.FOLDER / ".torn").write_bytes(b"")
    assert cursor.Cursor(folder, "x").seq == 7
    next((folder / cursor.FOLDER).glob("[0-9a-f]*")).write_bytes(b"")
    assert cursor.Cursor(folder, "x", 3).seq == 3


@pytest.mark.starts_processes
def test_what_an_agent_wrote_is_no_part_of_a_command(tmp_path) -> None:
    target = CommandTarget(f"touch {tmp_path}/one")
    hostile = f"$(touch {tmp_path}/two); `touch {tmp_path}/two`"
    facts = {"run": hostile, "message": hostile}
    target.send(Notice(1, "end", hostile, hostile, facts))
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.starts_processes
def test_a_command_that_takes_too_long_is_named_without_its_words(monkeypatch) -> None:
    monkeypatch.setattr(notify, "COMMAND_S", 0.1)
    with pytest.raises(Infrastructure) as error:
        CommandTarget("sleep 20 20").send(Notice(1, "end", "", "", {"run": ""}))
    assert str(error.value) == "sleep took longer than 0.1 s"

"""``dgm log --follow``: every event once, until nobody writes the run any more."""

import json
import threading
from pathlib import Path

import pytest

from dgm.archive.history import follow_log
from dgm.archive.store import EventStore
from dgm.cli.main import main
from tests.support.runs.packable import begin, evaluate

pytestmark = pytest.mark.slow


def test_events_are_followed_until_the_writer_ends(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as run:
        seen = []
        first = threading.Event()

        def follow() -> None:
            with EventStore.open(run.folder / "events.db", write=False) as log:
                for recorded in follow_log(log, run.folder, 1, every_s=0.01):
                    seen.append(recorded.seq)
                    first.set()

        following = threading.Thread(target=follow, daemon=True)
        following.start()
        assert first.wait(20)
        evaluate(run, "it")
        last = run.tree.seq
    following.join(20)
    assert not following.is_alive()
    assert seen == list(range(2, last + 1))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[dict], str]:
    with pytest.raises(SystemExit) as left:
        main(["log", *words, "--json"])
    said = capsys.readouterr()
    assert left.value.code == 0
    return [json.loads(line) for line in said.out.splitlines()], said.err


def test_a_run_that_does_not_run_is_printed_and_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with begin(tmp_path / "run") as run:
        for task in ("a", "b"):
            evaluate(run, "it", task)
        last = run.tree.seq
    name = str(tmp_path / "run")
    rows, told = printed(capsys, name, "--follow")
    assert [row["seq"] for row in rows] == list(range(last - 9, last + 1))
    assert told == "run is not running (interrupted)\n"
    assert [row["seq"] for row in printed(capsys, name, "--follow", "--after", "3")[0]] == list(
        range(4, last + 1)
    )
    assert [row["seq"] for row in printed(capsys, name, "--tail", "2")[0]] == [last - 1, last]
    graded = printed(capsys, name, "--follow", "--tail", "1", "--kind", "task_graded")[0]
    assert [row["body"]["task"] for row in graded] == ["b"]
    assert printed(capsys, name, "--tail", "0")[0] == []
    assert printed(capsys, name, "--tail", "3", "--kind", "run_paused")[0] == []


def test_two_places_to_begin_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(tmp_path / "run").close()
    with pytest.raises(SystemExit) as left:
        main(["log", str(tmp_path / "run"), "--after", "1", "--tail", "1"])
    assert left.value.code == 2
    assert "--after and --tail" in capsys.readouterr().err


def test_ctrl_c_ends_quietly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with begin(tmp_path / "run"):
        # The first wait for what comes is when a person presses the key.
        monkeypatch.setattr("dgm.archive.history.time.sleep", _pressed)
        rows, told = printed(capsys, str(tmp_path / "run"), "--follow")
    assert [row["seq"] for row in rows] == [1, 2]
    assert told == ""


def _pressed(_: float) -> None:
    raise KeyboardInterrupt

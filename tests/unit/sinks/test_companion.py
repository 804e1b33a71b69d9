"""The companion process of a run, with a real HTTP server that it notifies."""

import json
import subprocess
import sys

import pytest

from dgm.archive.events import RunStopped
from dgm.archive.run import Run
from dgm.config import NotifySettings, Settings, SinksSettings
from dgm.errors import UserError
from dgm.sinks.companion import LOG, Receivers, describe_failure, start_companion
from dgm.sinks.cursor import hold_deliveries
from tests.support.listener import Listener, wait_until
from tests.support.runs.growing import Growing

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def listener():
    with Listener() as listener:
        yield listener


def settings_for(*notify: str, sinks: tuple[str, ...] = (), on_event: str | None = None) -> Settings:
    receivers = NotifySettings(to=notify, on_event=on_event)
    return Settings(sinks=SinksSettings(to=sinks), notify=receivers)


def test_a_session_notifies_an_address_and_a_command_of_its_end(tmp_path, listener) -> None:
    command = f"{sys.executable} -c \"import os, sys; open('{tmp_path}/heard', 'a').write(sys.stdin.read())\""
    with start_companion(settings_for(listener.address, on_event=command)) as name_run:
        growing = Growing(tmp_path / "run")
        name_run(growing.run, 0)
        growing.graded(0, 0, good=True)
        growing.run.append(RunStopped("goal reached"))
        growing.run.close()
    wait_until(lambda: listener.titles and (tmp_path / "heard").exists())
    assert listener.titles == ["dgm run: ended: goal reached"]
    facts = json.loads((tmp_path / "heard").read_text())
    assert (facts["event"], facts["run"], facts["resolved"]) == ("end", "run", 1)


def test_a_resumed_session_says_nothing_twice_and_what_is_missing(tmp_path, listener) -> None:
    settings = settings_for(listener.address)
    with start_companion(settings) as name_run:
        growing = Growing(tmp_path / "run")
        name_run(growing.run, 0)
        growing.run.append(RunStopped("stopped"))
        growing.run.close()
    wait_until(lambda: len(listener.titles) == 1)
    with Run.open(tmp_path / "run", write=True) as run:
        run.append(RunStopped("missed"))
    with start_companion(settings) as name_run, Run.open(tmp_path / "run", write=True) as run:
        name_run(run, run.tree.seq)
        run.append(RunStopped("goal reached"))
    wait_until(lambda: len(listener.titles) == 3)
    assert [title.rpartition(" ended: ")[2] for title in listener.titles] == [
        "stopped",
        "missed",
        "goal reached",
    ]


def test_a_new_address_hears_nothing_of_earlier_sessions(tmp_path, listener) -> None:
    growing = Growing(tmp_path / "run")
    growing.run.append(RunStopped("stopped"))
    growing.run.close()
    with (
        start_companion(settings_for(listener.address)) as name_run,
        Run.open(tmp_path / "run", write=True) as run,
    ):
        name_run(run, run.tree.seq)
        run.append(RunStopped("goal reached"))
    wait_until(lambda: listener.titles)
    assert listener.titles == ["dgm run: ended: goal reached"]


def test_a_killed_session_is_noticed(tmp_path, listener) -> None:
    program = (
        "import os, sys, signal\n"
        "from pathlib import Path\n"
        "from dgm.config import Settings\n"
        "from dgm.sinks.companion import start_companion\n"
        "from tests.support.runs.growing import Growing\n"
        f"settings = Settings.model_validate({{'notify': {{'to': ['{listener.address}']}}}})\n"
        "with start_companion(settings) as name_run:\n"
        f"    growing = Growing(Path('{tmp_path}/run'))\n"
        "    name_run(growing.run, 0)\n"
        "    growing.graded(0, 0, good=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=False, timeout=100)
    wait_until(lambda: listener.titles)
    assert listener.titles == ["dgm run: its process died"]


def test_a_receiver_that_fails_is_tried_again(tmp_path) -> None:
    with Listener(refusals=1) as listener:
        with start_companion(settings_for(listener.address)) as name_run:
            growing = Growing(tmp_path / "run")
            name_run(growing.run, 0)
            growing.run.append(RunStopped("goal reached"))
            growing.run.close()
        wait_until(lambda: listener.titles)
        assert listener.titles == ["dgm run: ended: goal reached"]
    assert (tmp_path / "run" / LOG).read_text().splitlines() == [
        "json:… failed: the notification was not accepted"
    ]


def test_no_address_is_in_the_folder_of_a_run(tmp_path, listener, monkeypatch) -> None:
    monkeypatch.setenv("WHERE", f"{listener.address}/secret-token")
    with start_companion(settings_for("env:WHERE")) as name_run:
        growing = Growing(tmp_path / "run")
        name_run(growing.run, 0)
        growing.run.append(RunStopped("goal reached"))
        growing.run.close()
    wait_until(lambda: listener.titles)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not [path for path in files if b"secret-token" in path.read_bytes()]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (settings_for("nonsense"), "notify: the address is no apprise address"),
        (settings_for("env:NOT_SET"), "notify: the environment variable NOT_SET is not set"),
        (settings_for(sinks=("mlfow:x",)), "mlfow:… is no sink; an address begins with one of mlflow:"),
        (settings_for(on_event="'"), 'notify.on_event: "\'": No closing quotation'),
    ],
)
def test_a_wrong_address_is_refused_before_the_session_begins(settings, problem) -> None:
    with pytest.raises(UserError) as error, start_companion(settings):
        pass
    assert str(error.value).startswith(problem)


def test_an_address_that_is_named_twice_hears_once(tmp_path, listener) -> None:
    with start_companion(settings_for(listener.address, listener.address)) as name_run:
        growing = Growing(tmp_path / "run")
        name_run(growing.run, 0)
        growing.run.append(RunStopped("goal reached"))
        growing.run.close()
    wait_until(lambda: listener.titles)
    assert Receivers.of(settings_for("json://a", "json://a", sinks=("otlp:", "otlp:"))) == Receivers(
        ("otlp:",), ("json://a",), None, NotifySettings().events
    )
    assert len(listener.titles) == 1


def end_session(folder, change: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a changed companion of a session that has ended."""
    code = f"import sys; from dgm.sinks import companion; {change}; sys.exit(companion.main())"
    records = (
        {"sinks": [], "notify": [], "on_event": "true", "events": []},
        {"folder": str(folder), "since": 0},
    )
    orders = "".join(json.dumps(record) + "\n" for record in records).encode()
    return subprocess.run(
        [sys.executable, "-c", code], input=orders, stdout=subprocess.PIPE, timeout=60, check=True
    )


def test_what_a_library_prints_is_read_by_nobody(tmp_path) -> None:
    Growing(tmp_path / "run").run.close()
    done = end_session(tmp_path / "run", "companion.deliver = lambda *_: print('x' * 1_000_000)")
    assert done.stdout == b"{}\n"


def test_a_session_that_is_not_delivered_says_so(tmp_path) -> None:
    Growing(tmp_path / "run").run.close()
    with hold_deliveries(tmp_path / "run"):
        end_session(tmp_path / "run", "companion.BUSY_S = 0")
    assert "another process delivers it" in (tmp_path / "run" / LOG).read_text()


def test_the_message_of_a_failure_names_no_path_of_an_address() -> None:
    text = "HTTPSConnectionPool(host='h', port=443): Max retries exceeded with url: /token/api?x=1 (refused)"
    assert "token" not in describe_failure(OSError(text))


def test_the_message_of_a_failure_names_no_address() -> None:
    assert (
        describe_failure(OSError("https://user:key@host/x?token=1 refused")) == "failed: OSError: … refused"
    )

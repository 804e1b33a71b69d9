"""A search over a weekend: its provider goes away and comes back, its process is killed, it is resumed, and it ends."""

from dataclasses import replace

import pytest

from tests.support.hosted import KEY, PROVIDERS, begun, count, events, until
from tests.support.listener import Listener
from tests.support.program import PATIENCE_S
from tests.support.wire_server import Kind, Offline, WireServer

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.sampled]
OPENAI = PROVIDERS["openai"]
PATIENCE = (
    "--set",
    "limits.failures_in_a_row=2",
    "--set",
    "limits.pause_s=0.2",
    "--set",
    "sandbox=bubblewrap",
)


def test_each_event_of_a_weekend_is_notified_once_and_in_order(dgm) -> None:
    dgm = replace(dgm, environment={OPENAI.key_env: KEY})
    run = dgm.archive / "weekend"
    with WireServer(key=KEY, models=(OPENAI.own_name,), brain=Offline()) as server, Listener() as listener:
        search = [
            "--max-evaluations",
            "6",
            "--agent",
            "plain",
            "--workers",
            "1",
            "--notify",
            listener.address,
        ]
        words = OPENAI.words(server.url, "tries=2")
        with begun(dgm, "run", "--name", run.name, *PATIENCE, *search, *words) as friday:
            until(lambda: count(run, "evaluations") >= 1, friday)
            server.outage(True, Kind.ERROR_529)
            listener.wait_for("paused")
            assert dgm.json("status", run.name)["state"] == "paused"
            server.outage(False)
            listener.wait_for("goes on")
            until(lambda: count(run, "evaluations") >= 4, friday)
            friday.kill()
            friday.wait()
            listener.wait_for("its process died")
        assert dgm.json("status", run.name)["state"] == "interrupted"
        with begun(dgm, "resume", run.name, "--notify", listener.address) as monday:
            _, errors = monday.communicate(timeout=PATIENCE_S)
            assert monday.returncode == 0, errors
            listener.wait_for("ended")
    moments = [title.removeprefix(f"dgm {run.name}: ").partition(":")[0] for title in listener.titles]
    assert moments == [
        "paused",
        "goes on after a pause",
        "50% of the budget of evaluations is used",
        "its process died",
        "90% of the budget of evaluations is used",
        "ended",
    ]
    assert len(events(run, "run_stopped")) == 1

"""A search over a weekend: its provider goes away and comes back, its process is killed, it is resumed, and it ends."""

import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from tests.support.hosted import KEY, PROVIDERS, begun, count, events, until
from tests.support.listener import Listener, wait_until
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


@dataclass(frozen=True)
class Page:
    """The pages of a run, which stay open all weekend."""

    url: str

    def gauge(self, name: str) -> float:
        """The first value of a gauge."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith(name + "{")).rpartition(" ")[2])


@contextmanager
def open_page(dgm, name):
    with begun(dgm, "serve", name, "--port", "0") as server:
        url = urlsplit(server.stdout.readline().strip())
        yield Page(f"{url.scheme}://{url.netloc}")


def test_each_event_of_a_weekend_is_notified_once_and_in_order(dgm) -> None:
    dgm = replace(dgm, environment={OPENAI.key_env: KEY})
    run = dgm.archive / "weekend"
    with ExitStack() as stack:
        brain = Offline()
        server = stack.enter_context(WireServer(key=KEY, models=(OPENAI.own_name,), brain=brain))
        listener = stack.enter_context(Listener())
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
            page = stack.enter_context(open_page(dgm, run.name))
            until(lambda: page.gauge("dgm_paused") == 1, friday)
            assert dgm.json("status", run.name)["state"] == "paused"
            server.outage(False)
            listener.wait_for("goes on")
            until(lambda: page.gauge("dgm_paused") == 0, friday)
            until(lambda: count(run, "evaluations") >= 4, friday)
            friday.kill()
            friday.wait()
            listener.wait_for("its process died")
        assert dgm.json("status", run.name)["state"] == "interrupted"
        wait_until(lambda: page.gauge("dgm_living") == 0)
        with begun(dgm, "resume", run.name, "--notify", listener.address) as monday:
            _, errors = monday.communicate(timeout=PATIENCE_S)
            assert monday.returncode == 0, errors
            listener.wait_for("ended")
        wait_until(lambda: page.gauge("dgm_budget_used_ratio") == 1)
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

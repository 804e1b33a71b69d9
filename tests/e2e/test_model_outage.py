"""Searches whose provider goes away, or takes their key no more."""

import shutil
import time
from dataclasses import replace

import pytest

from dgm.paths import asset
from tests.support.hosted import ANSWERED, KEY, PROVIDERS, TWICE, begun, count, events, rows, until
from tests.support.models.rate_limits import read_limit_answers
from tests.support.program import PATIENCE_S
from tests.support.wire_server import Kind, Offline, WireServer

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

OPENAI = PROVIDERS["openai"]
HASTE_S = 25
"""Of an agent: more than it needs on a busy machine, less than the outage."""
PATIENCE = ("--set", "limits.failures_in_a_row=2", "--set", "limits.pause_s=0.2")


KEYS = {provider.key_env: KEY for provider in PROVIDERS.values()}


@pytest.fixture
def dgm(dgm):
    """The program with a key for every provider."""
    return replace(dgm, environment=KEYS)


@pytest.fixture
def server():
    """A provider with the offline model behind it."""
    names = tuple(provider.own_name for provider in PROVIDERS.values())
    with WireServer(key=KEY, models=names, brain=Offline()) as running:
        yield running


def search(name, server, evaluations, provider=OPENAI):
    words = [
        "run",
        "--name",
        name,
        "--set",
        "sandbox=bubblewrap",
        "--max-evaluations",
        str(evaluations),
        *PATIENCE,
    ]
    return [*words, "--agent", "plain", *provider.words(server.url, "tries=2")]


GRADED = "evaluations where verdict <> 'invalid'"


class Limited(Offline):
    """Answers each call at the second try, and before with what one of many providers says at a limit."""

    def __init__(self):
        super().__init__()
        self.limits = [each for each in read_limit_answers() if each.meaning == "passing" and not each.wait_s]
        self.refused = []
        self.calls = 0

    async def answer(self, request):
        self.calls += 1
        if self.calls % 2:
            self.refused.append(self.limits[len(self.refused) % len(self.limits)])
            raise self.refused[-1].refused(time.time())
        return await super().answer(request)


@pytest.mark.minutes
def test_limits_of_all_providers_in_turn_cost_a_search_nothing(dgm):
    run, brain = dgm.archive / "limited", Limited()
    with WireServer(key=KEY, models=(OPENAI.own_name,), brain=brain) as server:
        dgm(*search(run.name, server, 4), "--workers", "1")
    assert len(brain.refused) >= len(brain.limits)
    assert count(run, GRADED) == count(run, "evaluations") == 4
    assert not events(run, "run_paused") and not events(run, "action_lost")
    assert count(run, ANSWERED) == server.answered
    assert not count(run, TWICE)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("openai", Kind.ERROR_503), pytest.param("anthropic", Kind.RESET, marks=pytest.mark.sampled)],
)
def test_an_outage_pauses_the_run_and_is_nobodys_failure(dgm, server, name, kind):
    run = dgm.archive / f"outage-{name}"
    with begun(dgm, *search(run.name, server, 4, PROVIDERS[name])) as process:
        until(lambda: count(run, "evaluations") >= 1, process)
        server.outage(True, kind)
        until(lambda: events(run, "run_paused"), process)
        assert dgm.json("status", run.name)["state"] == "paused"
        assert "paused" in dgm("status", run.name).stdout
        during = count(run, "events")
        assert rows(run, "select kind from events order by seq desc limit 1") == [("run_paused",)]
        asked = len(server.requests)
        until(lambda: len(server.requests) >= asked + 3, process)
        assert count(run, "events") == during, "nothing is started before the provider answers"
        server.outage(False)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "paused until the provider answers again" in output + errors
    assert count(run, GRADED) == 4
    lost = rows(run, "select reason from evaluations where verdict = 'invalid'")
    lost += rows(run, "select json_extract(body, '$.reason') from events where kind = 'action_lost'")
    assert lost
    assert all("2 tries" in reason or "not answer" in reason for (reason,) in lost), lost
    assert not count(run, TWICE)
    assert count(run, ANSWERED) == server.answered
    assert dgm.json("status", run.name)["state"] == "goal reached"


def test_an_outage_that_is_not_waited_out_is_gone_on_with(dgm, server):
    run = dgm.archive / "outage-stopped"
    with begun(dgm, *search(run.name, server, 3)) as process:
        until(lambda: count(run, "evaluations") >= 1, process)
        server.outage(True)
        until(lambda: events(run, "run_paused"), process)
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    with begun(dgm, "resume", run.name) as process:
        until(lambda: len(events(run, "run_paused")) >= 2, process)
        server.outage(False)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "the search will wait for it" in errors
    assert count(run, GRADED) == 3
    assert count(run, ANSWERED) == server.answered


@pytest.mark.parametrize("name", ["openai", pytest.param("anthropic", marks=pytest.mark.sampled)])
def test_a_key_that_is_revoked_pauses_the_run_until_a_person_acts(dgm, server, name):
    provider, run = PROVIDERS[name], dgm.archive / f"revoked-{name}"
    renewed = KEY[:-4] + "newK"
    refused = f"the key in {provider.key_env} is refused: 401"
    with begun(dgm, *search(run.name, server, 3, provider)) as process:
        until(lambda: count(run, "evaluations") >= 1, process)
        graded = count(run, GRADED)
        server.app.config = replace(server.app.config, key=renewed)
        until(lambda: events(run, "run_paused"), process)
        assert refused in dgm("status", run.name).stdout
        assert refused in dgm.json("status", run.name)["paused"]
        process.terminate()
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert refused in output + errors
    assert f"to continue: dgm resume {run.name}" in errors.splitlines()[-1]
    assert count(run, GRADED) - graded <= 2, "only what had its last reply already"
    said = dgm("resume", run.name, code=2).stderr
    assert refused in said
    assert said.count("\n") == 1
    mended = replace(dgm, environment={provider.key_env: renewed})
    assert mended.json("resume", run.name)["evaluations"]["graded"] == 3
    assert count(run, ANSWERED) == server.answered


def test_an_outage_takes_nothing_of_an_agents_time(dgm, server, tmp_path):
    run, suite = dgm.archive / "outage-late", tmp_path / "hasty"
    shutil.copytree(asset("benchmarks", "starter"), suite)
    text = (suite / "suite.toml").read_text()
    (suite / "suite.toml").write_text(text.replace("timeout_s = 120", f"timeout_s = {HASTE_S}", 1))
    patient = ["--benchmark", str(suite), *OPENAI.assign("tries=50"), *OPENAI.assign("backoff_s=1")]
    with begun(dgm, *search(run.name, server, 2), *patient, "--workers", "1") as process:
        until(lambda: len(server.requests) >= 4, process)
        server.outage(True)
        time.sleep(HASTE_S + 2)
        assert not count(run, "evaluations"), "the agent waits"
        server.outage(False)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    found = rows(run, "select verdict, reason from evaluations order by graded_at")
    assert len(found) == 2
    assert all(verdict != "invalid" and "out of time" not in str(reason) for verdict, reason in found), found

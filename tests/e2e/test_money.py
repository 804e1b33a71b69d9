"""A run never spends more than it may, as its journal counts and as its provider does."""

from dataclasses import replace

import pytest

from tests.support.hosted import ANSWERED, KEY, PROVIDERS, TWICE, count, events, rows
from tests.support.wire_server import Offline, Price, WireServer

pytestmark = pytest.mark.sandbox

OPENAI, ANTHROPIC = PROVIDERS["openai"], PROVIDERS["anthropic"]
INPUT, OUTPUT = 5.5, 27.5
"""USD per million tokens: with them 0.50 USD are about 60 calls."""
WORKERS = 16


@pytest.fixture
def dgm(dgm):
    """The program with a key for every provider."""
    return replace(dgm, environment={provider.key_env: KEY for provider in PROVIDERS.values()})


@pytest.fixture
def server():
    """A provider that counts what it bills."""
    names = tuple(provider.own_name for provider in PROVIDERS.values())
    prices = dict.fromkeys(names, Price(INPUT, OUTPUT))
    with WireServer(key=KEY, models=names, brain=Offline(), prices=prices) as running:
        yield running


def words(name, server, provider=OPENAI, *more, prices=(INPUT, OUTPUT)):
    priced = (f'models.prices."{provider.model}".{part}' for part in ("input", "output"))
    given = [
        word for each in zip(priced, prices, strict=True) for word in ("--set", "=".join(map(str, each)))
    ]
    common = ["--set", "sandbox=bubblewrap", "--agent", "plain"]
    return ["run", "--name", name, *common, *provider.words(server.url), *given, *more]


def spent(run):
    ((usd,),) = rows(run, "select coalesce(sum(usd), 0) from spend")
    return usd, count(run, ANSWERED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "limit"),
    [(OPENAI, 0.25), pytest.param(ANTHROPIC, 0.25, marks=pytest.mark.sampled)],
    ids=["openai", "anthropic"],
)
def test_many_workers_never_cross_the_limit(dgm, server, provider, limit):
    run = dgm.archive / f"money-{provider.section}"
    most = ("--set", "limits.output_tokens=1000")
    first = words(run.name, server, provider, "--workers", WORKERS, "--max-usd", str(limit), *most)
    usd, calls = within(dgm, run, server, limit, *first)
    assert 60 * limit <= calls <= 240 * limit
    more, calls = within(dgm, run, server, 2 * limit, "resume", run.name, "--max-usd", str(2 * limit))
    assert more > usd
    assert not count(run, TWICE)


def within(dgm, run, server, limit, *command):
    """A session that its limit ends; what the run has cost then, and how many calls it made."""
    done = dgm(*command, code=3)
    usd, calls = spent(run)
    assert usd <= limit
    assert server.spent_usd == pytest.approx(usd)
    assert server.answered == calls
    # On a slow machine, long steps are reported as well.
    said = [line for line in done.stderr.splitlines() if not line.endswith(" s)")]
    if command[0] == "run":
        assert [line.split()[0] for line in said[:8:7]] == ["plan", "holdout"]
        del said[:8]
    assert ": answers (a check of " in said.pop(0)
    if command[0] == "run":
        priced = said.pop(0)
        assert priced.startswith(f"price: {INPUT:g} USD per million tokens in, {OUTPUT:g} out (")
    assert len(said) == 1, said
    assert "the budget is spent: " in said[0]
    assert f"to continue: dgm resume {run.name} with a larger limit" in said[0]
    status = dgm.json("status", run.name)
    assert status["state"] == "budget spent"
    assert status["spend"]["usd"] == pytest.approx(usd, abs=1e-4)
    print(f"{limit}: {usd:.6f} USD, {calls} calls, the provider counts {server.spent_usd:.6f}")
    return usd, calls


def test_one_action_never_crosses_its_own_limit(dgm, server):
    run = dgm.archive / "money-action"
    most = ("--set", "limits.usd=0.05", "--set", "limits.output_tokens=800")
    dgm(*words(run.name, server, OPENAI, "--max-evaluations", 2, "--workers", 2, *most), code=1)
    by_action = rows(run, "select action, sum(usd) from spend group by action")
    assert by_action
    assert all(usd <= 0.05 for _, usd in by_action)
    told = events(run, "call_refused")
    assert told
    assert {refusal["code"] for refusal in told} == {"action_limit_exceeded"}
    assert "of 0.05 USD and the call may cost" in str(told[0]["message"])


def refused(dgm, server, name, *command):
    """The one line, after the plan, of a search that does not begin; nobody was asked anything that costs."""
    said = dgm(*command, code=2).stderr
    lines = said.splitlines()
    assert len(lines[8 if lines[0].startswith("plan ") else 0 :]) == 1, said
    assert KEY not in said
    assert not (dgm.archive / name).exists()
    assert server.answered == 0
    return said


def test_a_model_without_a_price_is_refused(dgm, server):
    command = ["run", "--name", "unpriced", "--set", "sandbox=bubblewrap", "--model", "openai/gpt-unheard-of"]
    said = refused(
        dgm, server, "unpriced", *command, "--set", f"providers.openai.base_url={server.openai_url}"
    )
    assert "nobody has said what the model 'openai/gpt-unheard-of' costs" in said
    assert '[models.prices."openai/gpt-unheard-of"]' in said


@pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC], ids=lambda provider: provider.section)
@pytest.mark.parametrize("key", ["sk-proj-wrong-wrong-wrong-9876", ""])
def test_a_wrong_or_missing_key_is_found_before_there_is_a_run(dgm, server, provider, key):
    other = replace(dgm, environment={provider.key_env: key})
    said = refused(other, server, "keyless", *words("keyless", server, provider))
    assert provider.key_env in said
    assert ("is refused: 401" if key else "is not set") in said
    assert "wrong-wrong" not in said


def test_an_unknown_model_is_found_before_there_is_a_run(dgm, server):
    command = words("unknown", server)
    command[command.index("--model") + 1] = "openai/gpt-6.1-sol"
    said = refused(dgm, server, "unknown", *command)
    assert "404 The model `gpt-6.1-sol` does not exist" in said

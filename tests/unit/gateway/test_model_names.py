"""An agent asks for its model by the provider's own name, and by the names of the vendor's other models."""

import asyncio

from dgm.gateway.lease import DRY_RUN
from dgm.models.builtin import DryRun
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, chat, client, gateway, talking
from tests.support.gateway.wire_provider import Provider

LENT = "openai/gpt-6.2-sol"
CLAUDE = "anthropic/claude-sonnet-5-5"


class Sol(Provider):
    name = LENT
    own_name = "gpt-6.2-sol"


def ask(folder, names, rules=None, journal=None, provider=None):
    """Ask for each name; return the status codes, the refusals, and the models that the provider was asked for."""
    provider = provider or Sol()

    async def scenario():
        async with talking(gateway(folder / "g", provider, journal=journal, rules=rules)) as (
            _opened,
            _lease,
            http,
        ):
            return [await http.post("/chat/completions", json=chat(model=name)) for name in names]

    answers = asyncio.run(scenario())
    refusals = [answer.json()["error"]["message"] for answer in answers if answer.status_code != 200]
    return [answer.status_code for answer in answers], refusals, {one.body["model"] for one in provider.asked}


def test_names_of_sibling_models_are_answered_with_the_lent_one_and_noted_once(tmp_path):
    journal = MemoryJournal()
    names = [
        "gpt-6.2-mini",
        "gpt-6.2-sol",
        "openai/gpt-6.2-sol",
        "default",
        "gpt-6.2-mini",
        "codex-mini-latest",
    ]
    statuses, _, asked = ask(tmp_path, names, journal=journal)
    assert statuses == [200] * 6
    assert asked == {"gpt-6.2-sol"}
    assert [(status, words.split("'")[1]) for *_, status, _, words in journal.refused] == [
        (200, "gpt-6.2-mini"),
        (200, "codex-mini-latest"),
    ]


def test_the_name_of_another_vendor_is_refused_with_the_setting_that_allows_it(tmp_path):
    statuses, refusals, asked = ask(tmp_path, ["claude-haiku-5", "my-model"])
    assert (statuses, asked) == ([404, 404], set())
    assert 'models.aliases = {"claude-haiku-5" = "default"}' in refusals[0]


def test_a_dry_run_answers_to_the_names_of_the_model_that_the_job_will_have(tmp_path):
    models = {"solve": Script(name=LENT), "improve": Script(name=CLAUDE), DRY_RUN: DryRun()}

    async def scenario():
        async with gateway(tmp_path / "g", Script(name=LENT)) as opened:
            opened.models = models
            statuses = {}
            for kind in ("solve", "improve"):
                with opened.lend(ACTION, DRY_RUN, kind=kind) as lease:
                    async with client(opened, lease.token) as http:
                        listed = (await http.get("/models")).json()["data"]
                        for name in ("gpt-6.2-sol", "claude-opus-5"):
                            answer = await http.post("/chat/completions", json=chat(model=name))
                            statuses[kind, name] = answer.status_code
                        statuses[kind, "told"] = (lease.names.native, listed[0]["id"])
        return statuses

    assert asyncio.run(scenario()) == {
        ("solve", "told"): ("gpt-6.2-sol", "gpt-6.2-sol"),
        ("solve", "gpt-6.2-sol"): 200,
        ("solve", "claude-opus-5"): 404,
        ("improve", "told"): ("claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("improve", "gpt-6.2-sol"): 404,
        ("improve", "claude-opus-5"): 200,
    }

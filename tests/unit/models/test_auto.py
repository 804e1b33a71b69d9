"""``auto``: which model it becomes, and that nothing is used that costs money without a yes."""

import json

import pytest

from dgm.config import Settings
from dgm.errors import UserError
from dgm.models.auto import USUAL, probe_servers, settle_auto
from dgm.models.pricing import Prices
from tests.support.models.sections import make_settings
from tests.unit.models.test_local_servers import MODELS, server

OLLAMA, LLAMA_CPP, VLLM = (one.base_url for one in USUAL)
DEFAULTS = Prices.load().defaults
BOTH = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}


class Asked:
    """Answers every offer the same way, and remembers them."""

    def __init__(self, *agreed):
        self.agreed = agreed
        self.offers = []

    def __call__(self, offer):
        self.offers.append(offer)
        return offer.provider in self.agreed


class Machine:
    """The servers of a machine: base URL → models."""

    def __init__(self, **models):
        self.models = models
        self.probed = []

    def __call__(self, urls):
        self.probed += urls
        return {url: self.models[url] for url in urls if url in self.models}


def machine(models=None):
    made = Machine()
    made.models = models or {}
    return made


def never(offer):
    raise AssertionError(f"asked for {offer}")


def test_named_model_stays_and_nobody_is_asked():
    settings = Settings(model="offline")
    here = machine()
    assert settle_auto(settings, never, BOTH, here) == (settings, "offline: as the settings say")
    assert here.probed == []


def test_set_key_is_used_after_a_yes():
    ask = Asked("openai")
    settled, why = settle_auto(Settings(), ask, {"OPENAI_API_KEY": "sk-1"}, machine())
    assert settled.model == DEFAULTS["openai"]
    assert why == f"{DEFAULTS['openai']}: OPENAI_API_KEY is set"
    assert [(offer.model, offer.key_variable, offer.base_url) for offer in ask.offers] == [
        (DEFAULTS["openai"], "OPENAI_API_KEY", None)
    ]
    assert ask.offers[0].price == Prices.load().of(DEFAULTS["openai"])


def test_every_no_leads_to_a_local_server_and_then_offline():
    local = machine({OLLAMA: ("qwen3",)})
    assert settle_auto(Settings(), Asked(), BOTH, local)[0].model == "openai-compatible/qwen3"
    assert settle_auto(Settings(), Asked(), BOTH, machine())[0].model == "offline"


def test_key_is_looked_for_where_the_settings_say():
    settings = make_settings(
        "auto", anthropic={"key_env": "TEAM_KEY", "base_url": "https://proxy.example.org"}
    )
    ask = Asked("anthropic")
    assert settle_auto(settings, ask, {"TEAM_KEY": "k"}, machine())[0].model == DEFAULTS["anthropic"]
    assert (ask.offers[0].key_variable, ask.offers[0].base_url) == ("TEAM_KEY", "https://proxy.example.org")
    assert settle_auto(settings, never, {"ANTHROPIC_API_KEY": "k"}, machine())[0].model == "offline"


def test_silent_endpoint_of_the_settings_is_an_error_and_not_passed_by():
    settings = make_settings("auto", compatible={"base_url": "http://localhost:9999/v1"})
    with pytest.raises(UserError, match="localhost:9999/v1 does not answer with a list of models"):
        settle_auto(settings, never, BOTH, machine())


def test_endpoint_elsewhere_needs_a_price():
    url = "https://models.example.org/v1"
    here = machine({url: ("first", "second")})
    with pytest.raises(UserError, match="offers first, second, and nobody has said what they cost"):
        settle_auto(make_settings("auto", compatible={"base_url": url}), never, {}, here)
    priced = make_settings(
        "auto", compatible={"base_url": url}, prices={"openai-compatible/second": {"input": 1, "output": 2}}
    )
    assert settle_auto(priced, never, {}, here)[0].model == "openai-compatible/second"


def test_real_server_is_found_through_the_real_probe():
    with server(json.dumps(MODELS).encode()) as (url, _):
        settled, _ = settle_auto(
            make_settings("auto", compatible={"base_url": url}), never, {}, probe_servers
        )
    assert settled.model == "openai-compatible/qwen3-coder:30b"


def test_empty_key_is_none():
    assert settle_auto(Settings(), never, {"OPENAI_API_KEY": "  "}, machine())[0].model == "offline"

"""Names of models and what they open; nothing here leaves this machine."""

import asyncio
import json

import pytest

from dgm.config import Settings
from dgm.errors import UserError
from dgm.models.choose import names_by_role, open_model, open_models
from dgm.models.offline import OfflineModel
from tests.unit.models.test_local_servers import server

KEY = "sk-test-0123456789abcdefghij"
VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_COMPATIBLE_API_KEY",
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def models(model="offline", **sections):
    return Settings.model_validate({"model": model, "models": sections})


def listing(name):
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"}]}).encode()


def refused(name, settings=None):
    with pytest.raises(UserError) as caught:
        open_model(name, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_roles_follow_the_model_unless_they_name_one():
    settings = models("openai/a", improve="anthropic/b")
    assert names_by_role(settings) == {"solve": "openai/a", "improve": "anthropic/b", "diagnose": "openai/a"}


def test_one_name_is_one_model():
    opened = open_models(models(improve="recorded"))
    assert opened["solve"] is opened["diagnose"]
    assert {role: model.name for role, model in opened.items()} == {
        "solve": "offline",
        "improve": "recorded",
        "diagnose": "offline",
    }


def test_models_of_one_provider_share_its_queue(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    opened = open_models(
        models("openai/a", improve="openai/b", diagnose="openai-compatible/c", compatible=HERE)
    )
    assert opened["solve"]._throttle is opened["improve"]._throttle
    assert opened["solve"]._throttle is not opened["diagnose"]._throttle


HERE = {"base_url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpt-5", "openai/gpt-5"),
        ("o5", "openai/o5"),
        ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("opnai/gpt-6-luna", "openai/gpt-6-luna"),
        ("ofline", "offline"),
    ],
)
def test_unknown_name_is_refused_with_what_was_meant(typed, meant):
    line = refused(typed)
    assert f"unknown model '{typed}'" in line
    assert f"did you mean '{meant}'?" in line
    assert "openai-compatible/…" in line


def test_name_like_no_other_lists_the_forms():
    line = refused("zzz")
    assert "did you mean" not in line
    assert (
        "openai/…, anthropic/…, openai-compatible/…, azure/…, bedrock/…, vertex/…, offline, recorded" in line
    )


def test_auto_opens_nothing():
    assert "'auto'" in refused("auto")


@pytest.mark.parametrize("name", ["openai/", "anthropic/ claude", "openai-compatible/x "])
def test_provider_without_a_models_own_name_is_refused(name):
    assert "expected the model's own name" in refused(name)


@pytest.mark.parametrize(
    ("name", "variable"), [("openai/gpt-6.2-sol", "OPENAI_API_KEY"), ("anthropic/c", "ANTHROPIC_API_KEY")]
)
def test_missing_key_is_found_at_once(name, variable):
    assert refused(name).startswith(f"{variable} is not set")


def test_key_is_read_from_the_variable_of_the_settings(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    line = refused("openai/gpt-6.2-sol", models(openai={"key_env": "TEAM_KEY"}))
    assert line.startswith("TEAM_KEY is not set")


def test_compatible_model_needs_an_address_and_says_how():
    assert "--set models.compatible.base_url=" in refused("openai-compatible/qwen3")


def test_compatible_model_needs_no_key_unless_one_is_named():
    assert open_model("openai-compatible/qwen3", models(compatible=HERE)).name == "openai-compatible/qwen3"
    named = models(compatible={**HERE, "key_env": "ROUTER_KEY"})
    assert refused("openai-compatible/qwen3", named).startswith("ROUTER_KEY is not set")


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "ftp://example.org", "http://", "http://me:secret@example.org/v1", "http://[::1"],
)
def test_address_that_is_none_or_holds_a_password_is_refused(url):
    line = refused("openai-compatible/qwen3", models(compatible={"base_url": url}))
    assert line.startswith("models.compatible.base_url")
    assert "secret" not in line


def test_wrong_address_in_the_environment_is_named_by_its_variable(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    assert refused("openai/gpt-6.2-sol").startswith("OPENAI_BASE_URL = 'nonsense'")


def test_settings_lead_to_the_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with server(listing("gpt-6.2-sol")) as (url, asked):
        asyncio.run(open_model("openai/gpt-6.2-sol", models(openai={"base_url": url})).check())
    assert asked == ["/v1/models"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_environment_leads_to_the_server_where_the_settings_do_not(monkeypatch, api):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with server(listing("gpt-6.2-sol")) as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        asyncio.run(open_model("openai/gpt-6.2-sol", models(openai={"api": api})).check())
    assert asked == ["/v1/models"]


def test_messages_server_is_asked_where_the_environment_says(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    body = {"id": "c", "type": "model", "display_name": "C", "created_at": "2026-01-01T00:00:00Z"}
    with server(json.dumps(body).encode()) as (url, asked):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url.removesuffix("/v1"))
        asyncio.run(open_model("anthropic/c").check())
    assert asked == ["/v1/models/c"]


def test_compatible_server_is_asked_without_a_key():
    with server(listing("qwen3")) as (url, asked):
        asyncio.run(open_model("openai-compatible/qwen3", models(compatible={"base_url": url})).check())
    assert asked == ["/v1/models"]


def test_model_that_a_server_does_not_offer_is_found_before_anything_is_spent():
    with server(listing("qwen3")) as (url, _), pytest.raises(UserError, match="qwen3"):
        asyncio.run(open_model("openai-compatible/llama", models(compatible={"base_url": url})).check())


class PlugIn(OfflineModel):
    """A model that a distribution offers; made from the settings."""

    def __init__(self, settings):
        super().__init__()
        self.name = f"mine-{settings.seed}"


def test_installed_plug_in_is_called_with_the_settings(tmp_path, monkeypatch):
    installed = tmp_path / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[dgm.models]\nmine = {__name__}:PlugIn\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert open_model("mine", Settings(seed=7)).name == "mine-7"
    assert refused("min").startswith("unknown model 'min' (did you mean 'mine'?")

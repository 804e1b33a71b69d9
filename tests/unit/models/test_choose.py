"""Names of models and what they open; nothing here leaves this machine."""

import asyncio

import pytest

from dgm.config import Settings
from dgm.errors import ProviderRefuses, UserError
from dgm.models.choose import open_model, open_models
from dgm.offline import OfflineModel
from tests.support.models.recording_server import recording, said
from tests.support.models.sections import make_settings

pytestmark = pytest.mark.slow

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


def refused(name, settings=None):
    with pytest.raises(UserError) as caught:
        open_model(name, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_name_is_one_model():
    opened = open_models(make_settings(improve="recorded"))
    assert opened["solve"] is opened["diagnose"]
    assert {role: model.name for role, model in opened.items()} == {
        "solve": "offline",
        "improve": "recorded",
        "diagnose": "offline",
    }


def test_models_of_one_provider_share_its_queue(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    opened = open_models(
        make_settings("openai/a", improve="openai/b", diagnose="openai-compatible/c", compatible=HERE)
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
    assert ("providers.opnai.kind" in line) == typed.startswith("opnai/")
    assert "openai-compatible/…" in line


@pytest.mark.parametrize("name", ["openai/", "anthropic/ claude", "openai-compatible/x "])
def test_provider_without_a_models_own_name_is_refused(name):
    assert "expected the model's own name" in refused(name)


@pytest.mark.parametrize(
    ("name", "variable"), [("openai/gpt-6.2-sol", "OPENAI_API_KEY"), ("anthropic/c", "ANTHROPIC_API_KEY")]
)
def test_missing_key_is_found_at_once(name, variable):
    assert refused(name).startswith(f"{variable} is not set")


def test_compatible_model_needs_no_key_unless_one_is_named():
    assert (
        open_model("openai-compatible/qwen3", make_settings(compatible=HERE)).name
        == "openai-compatible/qwen3"
    )
    named = make_settings(compatible={**HERE, "key_env": "ROUTER_KEY"})
    assert refused("openai-compatible/qwen3", named).startswith("ROUTER_KEY is not set")


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "ftp://example.org", "http://", "http://me:secret@example.org/v1", "http://[::1"],
)
def test_address_that_is_none_or_holds_a_password_is_refused(url):
    line = refused("openai-compatible/qwen3", make_settings(compatible={"base_url": url}))
    assert line.startswith("providers.openai-compatible.base_url")
    assert "secret" not in line


CALL = {"name": "bash", "arguments": '{"command": "true"}'}
ANSWERS = {
    "/v1/chat/completions": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "a", "type": "function", "function": CALL}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    },
    "/v1/responses": {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [{"type": "function_call", "id": "f", "call_id": "a", "status": "completed", **CALL}],
        "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
    },
    "/v1/messages": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "true"}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 3},
    },
}


def answered(one):
    """Each protocol in its own form; a list of models; nothing else is here."""
    if one.path == "/v1/models":
        return said({"object": "list", "data": [{"id": "m", "object": "model"}]})
    if one.path not in ANSWERS:
        return said({"error": {"message": "no such path"}}, 404)
    if one.body["model"] == "gone":
        return said({"error": {"message": "the model 'gone' does not exist", "code": "model_not_found"}}, 404)
    return said(ANSWERS[one.path])


def check(name, settings=None):
    return asyncio.run(open_model(name, settings).check())


@pytest.mark.parametrize(("api", "path"), [("responses", "/v1/responses"), ("chat", "/v1/chat/completions")])
def test_environment_leads_to_the_server_where_the_settings_do_not(monkeypatch, api, path):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with recording(answered) as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        check("openai/m", make_settings(openai={"api": api}))
    assert asked[-1].path == path
    assert asked[-1].headers["authorization"] == f"Bearer {KEY}"
    # Some accounts keep every answer unless told not to.
    assert asked[-1].body["store"] is False


def test_model_that_a_server_does_not_have_is_found_before_anything_is_spent():
    with recording(answered) as (url, _), pytest.raises(ProviderRefuses, match="'gone' does not exist"):
        check("openai-compatible/gone", make_settings(compatible={"base_url": f"{url}/v1"}))


def test_a_provider_of_ones_own_is_asked_at_its_address_with_its_own_key_only(monkeypatch):
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    monkeypatch.setenv("TEAM_KEY", "team-0123456789")
    mine = {"kind": "openai-compatible"}
    with recording(answered) as (url, asked):
        for more in ({}, {"key_env": "TEAM_KEY"}):
            check("mine/m", make_settings(mine={**mine, "base_url": f"{url}/v1", **more}))
    sent = [one.headers["authorization"] for one in asked if one.path == "/v1/chat/completions"]
    assert sent == ["Bearer none", "Bearer team-0123456789"]
    assert "mine/…" in refused("zzz", make_settings(mine=mine))


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


@pytest.mark.parametrize(
    "changes", [{"drop": ["messages"]}, {"rename": {"a": "model"}}, {"set": {"tools": []}}]
)
def test_the_request_itself_cannot_be_changed(changes):
    with pytest.raises(ValueError, match="is the request itself"):
        Settings.model_validate({"models": {"requests": {"openai/m": changes}}})

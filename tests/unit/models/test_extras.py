"""Headers, keys of the body and the reasoning effort that the settings add."""

import pytest

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.messages import WireProtocol
from dgm.models.extras import default_effort, read_extras


def read(**settings):
    return read_extras(ProviderSettings.model_validate(settings), "providers.openai")


def test_values_from_the_environment_are_secrets(monkeypatch):
    monkeypatch.setenv("A_SECRET", " value-of-a \n")
    extras = read(
        extra_headers={"X-A": "env:A_SECRET", "X-B": "plain"},
        extra_body={"deep": [{"token": "env:A_SECRET"}], "env": "environment:x"},
    )
    assert extras.headers == {"x-a": "value-of-a", "x-b": "plain"}
    assert extras.body == {"deep": [{"token": "value-of-a"}], "env": "environment:x"}
    assert extras.secrets == ("value-of-a", "value-of-a")


def test_missing_variable_is_named(monkeypatch):
    monkeypatch.delenv("A_SECRET", raising=False)
    with pytest.raises(
        UserError, match=r"providers\.openai\.extra_body\.deep\.token: .* A_SECRET is not set"
    ):
        read(extra_body={"deep": {"token": "env:A_SECRET"}})


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "API-Key", "Cookie"])
def test_secret_in_the_settings_is_refused_unseen(name):
    with pytest.raises(UserError) as caught:
        read(extra_headers={name: "Bearer hush-hush"})
    assert "env:NAME" in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("a b", "x"), ("", "x"), ("x-a", "a\nb"), ("x-a", "ü")])
def test_header_that_cannot_be_sent_is_refused(name, value):
    with pytest.raises(UserError, match="extra_headers"):
        read(extra_headers={name: value})


CHAT, RESPONSES, MESSAGES = WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.MESSAGES


@pytest.mark.parametrize(
    ("protocol", "body", "right"),
    [
        (CHAT, {}, {"reasoning_effort": "low"}),
        (CHAT, {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        (CHAT, {"reasoning": {"max_tokens": 5}}, {"reasoning": {"max_tokens": 5}}),
        (RESPONSES, {}, {"reasoning": {"effort": "low"}}),
        (RESPONSES, {"reasoning": {"summary": "auto"}}, {"reasoning": {"summary": "auto", "effort": "low"}}),
        (RESPONSES, {"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "high"}}),
        (RESPONSES, {"reasoning": None}, {"reasoning": {"effort": "low"}}),
        (MESSAGES, {}, {"output_config": {"effort": "low"}}),
        (MESSAGES, {"output_config": {"effort": "max"}}, {"output_config": {"effort": "max"}}),
    ],
)
def test_effort_is_named_where_the_request_names_none(protocol, body, right):
    assert default_effort(body, protocol, "low") == right
    assert default_effort(body, protocol, None) is body

"""Requests as the providers' servers see them, and their replies as they were sent."""

import asyncio
import json
import threading

import anthropic
import httpx2
import openai
import pytest

from dgm.errors import UserError
from dgm.messages import WireProtocol
from tests.support.models.connecting import KEY, clear_environment, connect, post
from tests.support.models.recording_server import Answer, recording, said

pytestmark = pytest.mark.slow

BODY = {"model": "m", "messages": [{"role": "user", "content": "Grüße"}], "temperature": 0.5}
EVENTS = b'data: {"a": 1}\n\n'


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    clear_environment(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


KINDS = [
    ("openai/m", "openai", "/v1", "/responses", "/v1/responses"),
    ("openai-compatible/m", "compatible", "/v1", "/chat/completions", "/v1/chat/completions"),
    ("anthropic/m", "anthropic", "", "/messages", "/v1/messages"),
    ("anthropic/m", "anthropic", "/v1", "/messages", "/v1/messages"),
]


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
def test_body_and_reply_pass_as_they_are(name, section, base, path, seen):
    reply = b'{"id" : "x",  "content": [1, 2]}\n'
    with recording(lambda _: Answer(content=reply)) as (url, asked):
        response = post(connect(name, **{section: {"base_url": url + base}}), path, BODY)
    assert asked[0].target == seen
    assert asked[0].body == BODY
    assert asked[0].headers["content-type"] == "application/json"
    assert response.content == reply


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
def test_query_of_the_base_url_stands_behind_every_path(name, section, base, path, seen):
    with recording(lambda _: said({"data": []})) as (url, asked):
        connection = connect(name, **{section: {"base_url": f"{url}{base}?api-version=2025-01-01&x=a%20b"}})

        async def ask():
            await connection.post(path, BODY, stream=False, headers={})
            await connection.get(connection.list_path)
            await connection.close()

        asyncio.run(ask())
    assert asked[0].target == f"{seen}?api-version=2025-01-01&x=a%20b"
    assert asked[1].path == "/v1/models"
    assert asked[1].query.endswith("api-version=2025-01-01&x=a%20b")
    assert connection.base_url == url + base.removesuffix("/v1" if section == "anthropic" else "")


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
@pytest.mark.parametrize("status", [304, 400, 401, 404, 429, 500, 529])
@pytest.mark.parametrize("stream", [False, True])
def test_every_status_is_returned_once(name, section, base, path, seen, status, stream):
    with recording(lambda _: said({"error": {"message": "no"}}, status)) as (url, asked):
        response = post(connect(name, **{section: {"base_url": url + base}}), path, BODY, stream=stream)
    assert response.status_code == status
    assert status == 304 or json.loads(response.content) == {"error": {"message": "no"}}
    assert len(asked) == 1


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
def test_stream_is_returned_before_it_ends(name, section, base, path, seen):
    go = threading.Event()
    sent = Answer(content=[EVENTS, EVENTS], headers={"content-type": "text/event-stream"}, go=go)

    async def first_then_rest(connection):
        response = await connection.post(path, {**BODY, "stream": True}, stream=True, headers={})
        chunks = response.aiter_bytes()
        first = await anext(chunks)
        go.set()
        rest = b"".join([chunk async for chunk in chunks])
        await response.aclose()
        await connection.close()
        return first, rest

    with recording(lambda _: sent) as (url, _):
        got = asyncio.run(first_then_rest(connect(name, **{section: {"base_url": url + base}})))
    assert got == (EVENTS, EVENTS)


def test_keys_go_as_the_vendors_clients_send_them():
    with recording(lambda _: said({})) as (url, asked):
        post(connect("openai/m", openai={"base_url": f"{url}/v1"}), "/responses", BODY)
        post(connect("anthropic/m", anthropic={"base_url": url}), "/messages", BODY)
    assert [one.headers["authorization"] for one in asked] == [f"Bearer {KEY}"] * 2
    assert asked[1].headers["anthropic-version"]


def test_a_compatible_server_gets_nothing_that_is_meant_for_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-key-000000")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: secret-of-openai")
    with recording(lambda _: said({})) as (url, asked):
        post(connect("openai-compatible/m", compatible={"base_url": url}), "/chat/completions", BODY)
    headers = asked[0].headers
    assert headers["authorization"] == "Bearer none"
    assert not any(name in headers for name in ("openai-organization", "openai-project", "x-gateway"))
    assert KEY not in str(headers)


def test_api_chooses_between_openais_protocols():
    assert connect("openai/m").protocol is WireProtocol.RESPONSES
    assert connect("openai/m", openai={"api": "chat"}).protocol is WireProtocol.CHAT
    assert connect("anthropic/m").protocol is WireProtocol.MESSAGES
    with pytest.raises(UserError, match=r"providers\.openai\.api"):
        connect("openai/m", openai={"api": "messages"})


def test_agents_headers_and_extras_go_with_the_request(monkeypatch):
    monkeypatch.setenv("TEAM_TOKEN", "team-secret-1234")
    extra = {
        "extra_headers": {"X-Team": "env:TEAM_TOKEN", "anthropic-beta": "ours-1"},
        "extra_body": {"metadata": {"team": "blue"}, "top_k": 5},
    }
    body = {**BODY, "metadata": {"user_id": "u"}}
    with recording(lambda _: said({})) as (url, asked):
        connection = connect("anthropic/m", anthropic={"base_url": url, **extra})
        post(
            connection,
            "/messages",
            body,
            headers={"Anthropic-Beta": "theirs-1", "anthropic-version": "2099-01-01"},
        )
    assert asked[0].headers["x-team"] == "team-secret-1234"
    assert asked[0].headers["anthropic-beta"] == "theirs-1,ours-1"
    assert asked[0].headers["anthropic-version"] == "2099-01-01"
    assert asked[0].body == {**BODY, "metadata": {"user_id": "u", "team": "blue"}, "top_k": 5}
    assert connection.secrets == (KEY, "team-secret-1234")


def test_half_a_character_is_replaced():
    broken = {"model": "m", "messages": [{"role": "user", "content": "a\ud83d"}]}
    with recording(lambda _: said({})) as (url, asked):
        post(connect("openai-compatible/m", compatible={"base_url": url}), "/chat/completions", broken)
    assert asked[0].body["messages"][0]["content"] == "a?"


@pytest.mark.parametrize(
    ("name", "section", "path", "error"),
    [
        ("openai-compatible/m", "compatible", "/chat/completions", openai.APIConnectionError),
        ("anthropic/m", "anthropic", "/messages", anthropic.APIConnectionError),
    ],
)
def test_no_reply_is_an_error_whose_cause_is_the_http_clients(name, section, path, error):
    with recording(lambda _: said({})) as (url, _):
        gone = url
    with pytest.raises(error) as caught:
        post(connect(name, **{section: {"base_url": gone}}), path, BODY)
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)


def test_a_redirect_to_another_server_carries_no_key(monkeypatch):
    monkeypatch.setenv("TEAM_TOKEN", "team-secret-1234")
    with recording(lambda _: said({})) as (elsewhere, asked):

        def move(one):
            return Answer(307, headers={"location": elsewhere + one.target})

        extra = {"extra_headers": {"x-team": "env:TEAM_TOKEN"}}
        with recording(move) as (url, _):
            post(connect("anthropic/m", anthropic={"base_url": url, **extra}), "/messages", BODY)
            post(connect("openai/m", openai={"base_url": url, **extra}), "/responses", BODY)
    assert len(asked) == 2
    assert KEY not in str([one.headers for one in asked])
    assert "team-secret" not in str([one.headers for one in asked])


def test_a_redirect_at_the_same_server_carries_the_key():
    def move(one):
        return said({}) if one.path.endswith("/") else Answer(307, headers={"location": one.target + "/"})

    with recording(move) as (url, asked):
        response = post(connect("anthropic/m", anthropic={"base_url": url}), "/messages", BODY)
    assert response.status_code == 200
    assert asked[1].headers["authorization"] == f"Bearer {KEY}"
    assert asked[1].body == BODY

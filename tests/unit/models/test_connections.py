"""Requests as the providers' servers see them, and their replies as they were sent."""

import asyncio
import json
import ssl
import subprocess
import threading

import aiohttp
import pytest

from dgm.errors import Infrastructure, UserError
from dgm.messages import WireProtocol
from dgm.models.connections import read_beginning
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


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
def test_body_and_reply_pass_as_they_are(name, section, base, path, seen, own):
    reply = b'{"id" : "x",  "content": [1, 2]}\n'
    with recording(lambda _: Answer(content=reply)) as (url, asked):
        response = post(connect(name, **{section: {"base_url": url + base}}), path, BODY, own=own)
    assert asked[0].headers["authorization"] == (
        "Bearer none" if section == "compatible" else f"Bearer {KEY}"
    )
    assert ("x-stainless-lang" in asked[0].headers) is own
    assert asked[0].target == seen
    assert asked[0].body == BODY
    assert asked[0].headers["content-type"] == "application/json"
    assert response.content == reply


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
def test_query_of_the_base_url_stands_behind_every_path(name, section, base, path, seen):
    with recording(lambda _: said({"data": []})) as (url, asked):
        connection = connect(name, **{section: {"base_url": f"{url}{base}?api-version=2025-01-01&x=a%20b"}})

        async def ready():
            pass

        async def ask():
            await connection.post(path, BODY, headers={}, ready=ready)
            await connection.get(connection.list_path)
            await connection.close()

        asyncio.run(ask())
    assert asked[0].target == f"{seen}?api-version=2025-01-01&x=a%20b"
    assert asked[1].path == "/v1/models"
    assert asked[1].query.endswith("api-version=2025-01-01&x=a%20b")
    assert connection.base_url == url + base.removesuffix("/v1" if section == "anthropic" else "")


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
@pytest.mark.parametrize("status", [307, 401, 500])
@pytest.mark.parametrize("own", [False, True])
def test_every_status_is_returned_once(name, section, base, path, seen, status, own):
    with recording(lambda _: said({"error": {"message": "no"}}, status)) as (url, asked):
        response = post(connect(name, **{section: {"base_url": url + base}}), path, BODY, own=own)
    assert response.status_code == status
    assert status == 304 or json.loads(response.content) == {"error": {"message": "no"}}
    assert len(asked) == 1


@pytest.mark.parametrize(("name", "section", "base", "path", "seen"), KINDS)
def test_stream_is_returned_before_it_ends(name, section, base, path, seen):
    go = threading.Event()
    sent = Answer(content=[EVENTS, EVENTS], headers={"content-type": "text/event-stream"}, go=go)

    async def ready():
        pass

    async def first_then_rest(connection):
        response = await connection.post(path, {**BODY, "stream": True}, headers={}, ready=ready)
        chunks = response.content.iter_any()
        first = await anext(chunks)
        go.set()
        rest = b"".join([chunk async for chunk in chunks])
        await connection.close()
        return first, rest

    with recording(lambda _: sent) as (url, _):
        got = asyncio.run(first_then_rest(connect(name, **{section: {"base_url": url + base}})))
    assert got == (EVENTS, EVENTS)


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
    both, only = (WireProtocol.RESPONSES, WireProtocol.CHAT), (WireProtocol.RESPONSES,)
    assert connect("openai/m").protocols == both
    assert connect("openai/m", openai={"api": "responses"}).protocols == only
    assert connect("openai/gpt-5.4-codex").protocols == connect("openai/o9-pro").protocols == only
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


@pytest.mark.parametrize("own", [False, True])
def test_a_server_that_is_away_never_gets_the_last_byte(own):
    readied = []

    async def ready():
        readied.append(1)

    async def ask():
        connection = connect("anthropic/m", anthropic={"base_url": gone})
        try:
            await connection.post("/messages", BODY, headers={}, ready=ready, own=own)
        finally:
            await connection.close()

    with recording(lambda _: said({})) as (url, _):
        gone = url
    with pytest.raises(aiohttp.ClientConnectorError):
        asyncio.run(ask())
    assert readied == []


@pytest.mark.parametrize("own", [False, True])
def test_the_last_byte_waits_and_what_it_waits_for_may_fail(own):
    """Until the whole request has arrived, no server can answer it."""
    durable = asyncio.Event()

    async def ready():
        await durable.wait()
        raise Infrastructure("the disk is full")

    async def ask(url):
        connection = connect("openai/m", openai={"base_url": url})
        asking = asyncio.create_task(connection.post("/responses", BODY, headers={}, ready=ready, own=own))
        await asyncio.sleep(0.2)
        assert not asking.done()
        durable.set()
        try:
            await asking
        finally:
            await connection.close()

    with (
        recording(lambda _: said({})) as (url, asked),
        pytest.raises(Infrastructure, match="the disk is full"),
    ):
        asyncio.run(asyncio.wait_for(ask(url), 20))
    assert not any(one.content.endswith(b"}") for one in asked)


def test_a_refusal_without_end_is_read_in_part():
    more = threading.Event()

    async def ask(url):
        connection = connect("openai-compatible/m", compatible={"base_url": url})
        try:
            response = await connection.post("/chat/completions", BODY, headers={}, ready=always)
            content = await read_beginning(response)
            response.close()
            return content, more.is_set()
        finally:
            await connection.close()

    async def always():
        pass

    with recording(lambda _: Answer(500, [b"x" * 1_500_000, b"y"], go=more)) as (url, _):
        content, ended = asyncio.run(asyncio.wait_for(ask(url), 8))
        more.set()
    assert 1_000_000 < len(content) <= 1_500_000
    assert not ended


@pytest.mark.starts_processes
def test_certificates_of_the_environment_are_trusted(monkeypatch, tmp_path):
    pem, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=provider", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*words, *names, "-keyout", str(key), "-out", str(pem)], check=True, capture_output=True)
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.load_cert_chain(pem, key)
    with recording(lambda _: said({"id": "x"}), certificate) as (url, _):
        section = {"base_url": url}
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            post(connect("openai-compatible/m", compatible=section), "/chat/completions", BODY)
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        answer = post(connect("openai-compatible/m", compatible=section), "/chat/completions", BODY)
    assert answer.json() == {"id": "x"}


def test_a_redirect_is_returned_and_not_followed():
    with recording(lambda _: said({})) as (elsewhere, asked):
        move = Answer(307, headers={"location": f"{elsewhere}/v1/messages"})
        with recording(lambda _: move) as (url, _):
            response = post(connect("anthropic/m", anthropic={"base_url": url}), "/messages", BODY)
    assert (response.status_code, asked) == (307, [])

"""The OpenAI wire protocol: the vendor's own client is content, and what is malformed is told so."""

import asyncio
import json

import httpx2
import openai
import pytest

from dgm.gateway.agent_start import AZURE_VERSION
from dgm.messages import Role
from tests.support.gateway.bench import ACTION, Script, chat, gateway, talking

pytestmark = pytest.mark.slow


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 300))


def with_vendor(tmp_path, model, talk):
    """What the openai client, on the gateway's socket, makes of a talk."""
    import httpx2
    import openai

    async def scenario():
        async with gateway(tmp_path / "g", model) as opened:
            with opened.lend(ACTION, "solve") as lease:
                transport = httpx2.AsyncHTTPTransport(uds=str(opened.folder / opened.socket_name))
                vendor = openai.AsyncOpenAI(
                    api_key=lease.token,
                    base_url="http://gateway/v1",
                    http_client=httpx2.AsyncClient(transport=transport),
                    max_retries=0,
                )
                async with vendor:
                    return await talk(vendor)

    return run(scenario())


def test_vendors_client_sees_errors_as_its_own(tmp_path):
    import openai

    async def talk(vendor):
        with pytest.raises(openai.NotFoundError) as caught:
            await vendor.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "go"}])
        return caught.value

    error = with_vendor(tmp_path, Script(), talk)
    assert error.code == "model_not_found"
    assert "use one of 'scripted', 'default'" in str(error)


def test_vendors_client_lists_the_lent_models(tmp_path):
    async def talk(vendor):
        return [model.id async for model in vendor.models.list()]

    assert with_vendor(tmp_path, Script(), talk) == ["scripted", "default"]


MALFORMED = {
    "not json": b"{",
    "not utf-8": b'{"messages": "\xff"}',
    "deep nesting": b"[" * 200_000,
    "deep nesting, closed": b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "no messages": b"{}",
    "provider's tool": json.dumps(chat(tools=[{"type": "web_search"}])).encode(),
    "several answers of a model in dgm's own form": json.dumps(chat(n=2)).encode(),
}
"""A few; ``test_allowed.py`` has what is refused in each protocol."""


async def test_malformed_requests_are_answered_in_the_vendors_shape_and_cost_nothing(tmp_path):
    model = Script()
    async with talking(gateway(tmp_path / "g", model)) as (_, lease, http):
        for name, body in MALFORMED.items():
            answer = await http.post("/chat/completions", content=body)
            assert answer.status_code == 400, name
            assert answer.json()["error"]["type"] == "invalid_request_error", name
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, name
        assert (await http.post("/chat/completions", json=chat())).status_code == 200
    assert (lease.refusals, lease.calls, lease.failure) == (len(MALFORMED), 1, None)


async def test_body_of_50_megabytes_is_refused(tmp_path):
    async with talking(gateway(tmp_path / "g")) as (_, _, http):
        answer = await http.post("/chat/completions", content=b" " * 50_000_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "request_too_large")


async def test_unknown_path_is_not_found(tmp_path):
    async with talking(gateway(tmp_path / "g")) as (_, lease, http):
        nothing = await http.post("/nothing", json={})
        tokens = await http.post("/messages/batches", json={}, headers={"anthropic-version": "2023-06-01"})
        got = await http.get("/chat/completions")
        http.headers = {"x-goog-api-key": lease.token}
        google = await http.post("http://gateway/v1beta/models/m:generateContent", json={})
    assert (nothing.status_code, tokens.status_code, got.status_code) == (404, 404, 404)
    assert (google.status_code, google.json()["error"]["code"]) == (404, "unknown_endpoint")
    assert "Qwen Code" in google.json()["error"]["message"]
    assert nothing.json()["error"]["code"] == "unknown_endpoint"
    assert tokens.json()["error"]["type"] == "not_found_error"


def test_response_goes_on_from_an_earlier_one(tmp_path):
    model = Script()

    async def talk(vendor):
        first = await vendor.responses.create(model="default", instructions="Be brief.", input="hi")
        return await vendor.responses.create(model="default", input="and?", previous_response_id=first.id)

    answer = with_vendor(tmp_path, model, talk)
    assert [(message.role, message.text) for message in model.asked[1].messages] == [
        (Role.USER, "hi"),
        (Role.ASSISTANT, "hello"),
        (Role.USER, "and?"),
    ]
    assert answer.previous_response_id


# The package openai's client for Azure, at the addresses that the variables of Azure name


@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_the_client_for_azure_is_answered(tmp_path, protocol):
    async def talk():
        async with gateway(tmp_path) as opened:
            with opened.lend(ACTION, "solve") as lease:
                uds = str(opened.folder / opened.socket_name)
                http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=uds))
                async with openai.AsyncAzureOpenAI(
                    api_key=lease.token,
                    azure_endpoint="http://gateway",
                    api_version=AZURE_VERSION,
                    http_client=http,
                ) as vendor:
                    if protocol == "responses":
                        return (await vendor.responses.create(model="default", input="hi")).output_text
                    said = await vendor.chat.completions.create(
                        model="default", messages=[{"role": "user", "content": "hi"}]
                    )
                    return said.choices[0].message.content

    assert asyncio.run(talk()) == "hello"

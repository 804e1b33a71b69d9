"""Which requests pass as they are, and which are translated or refused."""

import pytest

from dgm.errors import Infrastructure
from dgm.gateway import answering
from dgm.messages import WireProtocol
from tests.support.gateway.bench import chat, gateway, talking
from tests.support.gateway.wire_provider import Provider, streamed

pytestmark = pytest.mark.slow

RESPONSES = ("/responses", {"model": "default", "input": "hi"})
MESSAGES = ("/messages", {**chat(), "max_tokens": 100})


@pytest.mark.parametrize(("path", "body"), [RESPONSES, MESSAGES], ids=["responses", "messages"])
async def test_a_request_in_another_protocol_than_the_providers_is_translated(tmp_path, path, body):
    provider = Provider(streamed(passed=4))
    async with talking(gateway(tmp_path / "g", provider)) as (_, _, http):
        answer = await http.post(path, json=body, headers={"anthropic-version": "2023-06-01"})
    assert (answer.status_code, answer.json()["model"]) == (200, "default")
    [sent] = provider.asked
    assert sent.protocol is WireProtocol.CHAT
    assert sent.body["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_model_that_is_not_lent_is_refused_before_the_provider_is_asked(tmp_path):
    provider = Provider()
    async with talking(gateway(tmp_path / "g", provider)) as (_, _, http):
        answer = await http.post("/chat/completions", json={**chat(), "model": "another"})
    assert answer.status_code == 404
    assert "another" in answer.text
    assert provider.asked == []


@pytest.mark.parametrize("where", ["parse_document", "WireAnswer"])
async def test_a_fault_of_dgms_own_is_never_the_agents(tmp_path, monkeypatch, where):
    def fail(*_args, **_more):
        raise ValueError("a bug")

    async with talking(gateway(tmp_path / "g", Provider(streamed(passed=4)))) as (_, lease, http):
        monkeypatch.setattr(answering, where, fail)
        answer = await http.post("/responses", json=RESPONSES[1])
    assert (answer.status_code, lease.refusals, lease.foreign) == (503, 0, 0)
    assert isinstance(lease.failure, Infrastructure) and "ValueError: a bug" in str(lease.failure)

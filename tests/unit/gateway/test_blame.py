"""A request that fails while its model answers a neutral question is its agent's fault; anything else is nobody's."""

import asyncio

import pytest

from dgm.domain import ActionId, Usage
from dgm.errors import Infrastructure, ProviderRefuses
from dgm.gateway.blame import FAILED, QUESTION
from dgm.messages import LEFT_OPEN, Reply, WireProtocol
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, chat, client, gateway
from tests.support.gateway.wire_provider import Provider, whole


def poisoned(error, protocol=WireProtocol.CHAT):
    """A provider that fails at POISON alone."""

    async def answer(request, delivery):
        if "POISON" in str(request.body):
            raise error
        return await whole()(request, delivery)

    return Provider(answer, protocol=protocol)


class Poisoned(Script):
    """A model in dgm's own form that fails at POISON alone."""

    async def reply(self, request):
        self.asked.append(request)
        if "POISON" in request.messages[-1].text:
            raise KeyError("a bug")
        return Reply("hello", usage=Usage(1, 10, 5))


async def posted(opened, *texts, **more):
    with opened.lend(ACTION, "solve") as lease:
        async with client(opened, lease.token) as http:
            answers = [await http.post("/chat/completions", json=chat(text, **more)) for text in texts]
    return answers, lease


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "error", [Infrastructure("8 tries, the last: 500"), ProviderRefuses("403"), RecursionError("too deep")]
)
async def test_a_request_that_alone_fails_twice_is_refused_for_good(tmp_path, error, stream):
    journal, provider = MemoryJournal(), poisoned(error)
    async with gateway(tmp_path / "g", provider, journal) as opened:
        (bad, good), lease = await posted(opened, "POISON", "hi", stream=stream)
        assert opened.caller.trouble == {}
    assert (bad.status_code, bad.json()["error"]["code"], good.status_code) == (400, FAILED, 200)
    assert str(error) in bad.json()["error"]["message"]
    assert (lease.failure, lease.blameless, list(lease.refused)) == (None, "", [FAILED])
    assert str(error) in lease.refused[FAILED]
    asked = [str(request.body["messages"][-1]["content"]) for request in provider.asked]
    assert asked == ["POISON", QUESTION, "POISON", QUESTION, "hi"]
    # The questions are paid for like any other call.
    assert sum(call.reply.usage.tokens > 0 for call in journal.paid.values()) == 3


async def test_a_refused_failure_is_heard_again_without_being_sent(tmp_path):
    journal, heard = MemoryJournal(), []
    for _ in range(2):
        provider = poisoned(Infrastructure("500"))
        async with gateway(tmp_path / "g", provider, journal) as opened:
            (bad,), lease = await posted(opened, "POISON")
        heard.append((bad.status_code, bad.content, dict(lease.refused), len(provider.asked)))
    assert heard[0][:3] == heard[1][:3]
    assert heard[1][3] == 0


async def test_a_model_that_fails_at_one_request_alone_is_not_blamed_for_it(tmp_path):
    async with gateway(tmp_path / "g", Poisoned()) as opened:
        (bad, good), lease = await posted(opened, "POISON", "hi")
    assert (bad.status_code, good.status_code, lease.failure) == (400, 200, None)
    assert "KeyError" in lease.refused[FAILED]


async def test_what_befalls_the_neutral_question_too_is_an_outage(tmp_path):
    for number, error in enumerate((Infrastructure("503"), ProviderRefuses("401"))):

        async def answer(_request, _delivery, error=error):
            raise error

        async with gateway(tmp_path / f"g{number}", Provider(answer)) as opened:
            (bad,), lease = await posted(opened, "hi")
            assert opened.caller.trouble == {Provider.name: error}
        assert bad.status_code == 503
        assert str(lease.failure).endswith(str(error))


async def test_an_open_call_is_recorded_as_refused_for_a_replay(tmp_path):
    journal, gate = MemoryJournal(), asyncio.Event()

    async def slow(request, delivery):
        if QUESTION not in str(request.body):
            await gate.wait()
        return await whole()(request, delivery)

    async with gateway(tmp_path / "g", Provider(slow), journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                asking = asyncio.create_task(http.post("/chat/completions", json=chat("slow")))
                while not lease.billed_calls():
                    await asyncio.sleep(0.005)
                asking.cancel()
                lacking = await lease.wait_for_calls(0.05)
                assert "had not answered" in lacking
                assert await opened.caller.answers(lease)
                await opened.caller.refuse_open_calls(lease, lacking)
        gate.set()
    async with gateway(tmp_path / "again", RecordedModel("scripted"), journal) as opened:
        (answer,), lease = await posted(opened, "slow")
        assert (answer.status_code, lease.refused) == (400, {LEFT_OPEN: lacking})
        assert await opened.caller.answers(lease)
        (answer,), lease = await posted(opened, "not recorded")
        assert (answer.status_code, "no reply to this call" in str(lease.failure)) == (503, True)
        with opened.lend(ActionId(8), "solve") as other:
            assert not await opened.caller.answers(other)

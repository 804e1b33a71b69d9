"""Calls that the host itself makes for an action: limited, priced, journaled and served again like an agent's."""

import pytest

from dgm.domain import Budget, Usage
from dgm.errors import Infrastructure
from dgm.gateway.lease import CallLimits
from dgm.messages import Message, Reply, Request, RequestRefused, Role
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, ask, client, gateway

pytestmark = pytest.mark.slow


def question(text="what went wrong?", **more):
    return Request((Message(Role.USER, text),), **more)


async def test_a_call_is_asked_paid_for_and_on_the_leases_account(tmp_path):
    model, journal = Script(Reply("an issue", usage=Usage(1, 100, 10))), MemoryJournal()
    limits = CallLimits(output_tokens=500)
    async with gateway(tmp_path / "g", model, journal, limits=limits) as opened:
        with opened.lend(ACTION, "improve") as lease:
            reply = await opened.ask(lease, question(max_output_tokens=9_000))
    assert reply.text == "an issue"
    assert (model.asked[0].model, model.asked[0].max_output_tokens) == ("scripted", 500)
    assert [(call.key.number, call.role) for call in journal.paid.values()] == [(1, "improve")]
    assert lease.usage.usd == pytest.approx(journal.spent.usd) == pytest.approx(0.0002)


async def test_a_repetition_is_served_what_was_paid_for_each_reply_once(tmp_path):
    async def perform(folder, model, journal):
        async with gateway(folder, model, journal) as opened:
            heard = set()
            said = []
            for text in ("first", "same", "same"):
                with opened.lend(ACTION, "improve", heard=heard) as lease:
                    said.append((await opened.ask(lease, question(text))).text)
            with opened.lend(ACTION, "improve", heard=heard) as lease:
                async with client(opened, lease.token) as http:
                    said.append((await ask(http))[1]["choices"][0]["message"]["content"])
            return said

    journal = MemoryJournal()
    said = await perform(tmp_path / "a", Script(*map(Reply, "abcd")), journal)
    again = await perform(tmp_path / "b", Script(Reply("never asked")), journal)
    assert said == again == ["a", "b", "c", "d"]
    assert sorted(key.number for key in journal.paid) == [1, 2, 3, 4]


async def test_a_refusal_is_noted_and_heard_again(tmp_path):
    journal, model = MemoryJournal(), Script(RequestRefused("context_length_exceeded", "too long"))
    for _ in range(2):
        async with gateway(tmp_path / "g", model, journal) as opened:
            with (
                opened.lend(ACTION, "improve") as lease,
                pytest.raises(RequestRefused, match="too long") as caught,
            ):
                await opened.ask(lease, question())
        assert caught.value.code == "context_length_exceeded"
        assert tuple(lease.refused) == ("context_length_exceeded",)
        assert lease.failure is None
    assert len(model.asked) == 1
    assert [code for *_, code, _ in journal.refused] == ["context_length_exceeded"] * 2


async def test_a_lease_that_is_spent_refuses(tmp_path):
    model = Script()
    async with gateway(tmp_path / "g", model, limits=CallLimits(calls=1)) as opened:
        with opened.lend(ACTION, "improve") as lease:
            await opened.ask(lease, question())
            with pytest.raises(RequestRefused, match="limit of 1 model calls") as caught:
                await opened.ask(lease, question())
    assert caught.value.code == "action_limit_exceeded"
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("model", "usd"), [(Script(Infrastructure("no answer")), None), (Script(), 0.000_001)]
)
async def test_an_outage_and_an_empty_purse_are_the_worlds_fault(tmp_path, model, usd):
    journal = MemoryJournal()
    if usd:
        journal.already(Reply("paid before", usage=Usage(1, 10, 10, usd)), "another question")
    async with gateway(tmp_path / "g", model, journal, Budget(usd=usd)) as opened:
        with (
            opened.lend(ACTION, "improve") as lease,
            pytest.raises(Infrastructure, match="action 7, call 1: "),
        ):
            await opened.ask(lease, question())
        assert lease.failure is not None
        assert bool(opened.ledger.exhausted) is bool(usd)

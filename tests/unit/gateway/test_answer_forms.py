"""The form of a host's question: sent where the model takes it, and the same in a repetition or a replay."""

import asyncio

import pytest

from dgm.messages import AnswerForm, Message, Request, Role
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, MemoryJournal, gateway
from tests.support.gateway.wire_provider import Provider

pytestmark = pytest.mark.slow

QUESTION = Request(
    (Message(Role.USER, "What is wrong?"),), form=AnswerForm("issue", {"type": "object", "properties": {}})
)


class Taking(Provider):
    takes_form = True


def ask(folder, model, journal):
    async def scenario():
        async with gateway(folder, model, journal) as opened:
            with opened.lend(ACTION, "diagnose") as lease:
                return (await opened.ask(lease, QUESTION)).text

    return asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("first", [Taking, Provider])
@pytest.mark.parametrize("then", [Taking, Provider])
def test_a_repetition_is_served_the_paid_answer_whatever_the_model_takes_by_then(tmp_path, first, then):
    journal, again = MemoryJournal(), then()
    said = ask(tmp_path / "a", first(), journal)
    assert ask(tmp_path / "b", again, journal) == said == "hello"
    assert again.asked == []


@pytest.mark.parametrize("recorded", [Taking, Provider])
def test_a_replay_asks_as_the_record_does(tmp_path, recorded):
    journal = MemoryJournal()
    said = ask(tmp_path / "a", recorded(), journal)
    assert ask(tmp_path / "b", RecordedModel("scripted"), journal) == said

"""The form of a host's question: sent where the model takes it, and the same in a repetition or a replay."""

import asyncio

import pytest

from dgm.messages import AnswerForm, CallKey, Message, PaidCall, Reply, Request, Role, WireProtocol
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, gateway
from tests.support.gateway.wire_provider import Provider, lending

pytestmark = pytest.mark.slow

QUESTION = Request(
    (Message(Role.USER, "What is wrong?"),), form=AnswerForm("issue", {"type": "object", "properties": {}})
)


class Taking(Provider):
    takes_form = True


def ask(folder, model, journal):
    async def scenario():
        opening = gateway if isinstance(model, RecordedModel | Script) else lending
        async with opening(folder, model, journal) as opened:
            with opened.lend(ACTION, "diagnose") as lease:
                return (await opened.ask(lease, QUESTION)).text

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def formed(model):
    return ["response_format" in request.body for request in model.asked]


@pytest.mark.parametrize("model", [Taking(), Provider()], ids=["taken", "not taken"])
def test_the_form_is_sent_and_recorded_only_where_the_model_takes_it(tmp_path, model):
    journal = MemoryJournal()
    ask(tmp_path / "g", model, journal)
    (call,) = journal.paid.values()
    assert formed(model) == ["response_format" in call.request.body] == [model.takes_form]


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


def test_a_model_in_dgms_own_form_and_its_record_know_no_form(tmp_path):
    journal, model = MemoryJournal(), Script(Reply("an issue"))
    ask(tmp_path / "a", model, journal)
    assert model.asked[0].form is None
    assert [call.request.form for call in journal.paid.values()] == [None]


def test_an_answer_to_a_question_of_an_earlier_version_in_dgms_own_form_is_served(tmp_path):
    journal, model = MemoryJournal(), Taking(protocol=WireProtocol.CHAT)
    old = Request(QUESTION.messages, model="m", max_output_tokens=1)
    journal.paid[CallKey(ACTION, 1)] = PaidCall(
        CallKey(ACTION, 1), "m", "diagnose", old, Reply("as recorded"), 0.0
    )
    assert ask(tmp_path / "g", model, journal) == "as recorded"
    assert model.asked == []

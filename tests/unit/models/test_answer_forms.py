"""Models that are asked for an answer by a JSON schema, and what happens where a server refuses that."""

from dataclasses import replace

import pytest

from dgm.config import Settings
from dgm.messages import AnswerForm, Message, Request, RequestRefused, Role, WireProtocol, WireRequest
from dgm.models.providers import provider_of
from dgm.wires import WIRES
from tests.support import virtual_time
from tests.support.models.connection_script import NAME, Bench, answer, text_of
from tests.support.models.sections import make_settings

FORM = AnswerForm(
    "issue", {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
)
ASKED = Request((Message(Role.USER, "What is wrong?"),), max_output_tokens=64, form=FORM)
REFUSALS = (
    answer(
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        param="response_format",
        type="invalid_request_error",
    ),
    answer(422, "body.response_format: Extra inputs are not permitted"),
    answer(400, "Failed to parse grammar"),
    answer(400, "Invalid schema for response_format 'issue': additionalProperties must be false"),
    answer(500, "guided decoding is not available with this backend"),
)


def request(protocol=WireProtocol.CHAT, *, optional=True):
    body = WIRES[protocol].write_request(ASKED, "default")
    return WireRequest(protocol, body, form_optional=optional)


@pytest.mark.parametrize("refusal", REFUSALS, ids=range(len(REFUSALS)))
def test_a_refused_form_is_left_out_at_once_and_from_then_on(refusal):
    bench = Bench(refusal)

    async def scenario():
        for _ in range(2):
            assert text_of(await bench.model.send(request(), bench.log)) == "Here."

    virtual_time.run(scenario())
    assert ["response_format" in body for body in bench.script.bodies] == [True, False, False]
    assert bench.heard.lessons == [(NAME, {"forms": False}, "takes no form of the answer")]
    assert bench.log.wasted == []


def test_an_agents_own_form_is_never_left_out():
    bench = Bench(REFUSALS[0])
    bench.model.adopt(bench.heard, {"forms": False})
    with pytest.raises(RequestRefused, match="response_format"):
        virtual_time.run(bench.model.send(request(optional=False), bench.log))
    assert ["response_format" in body for body in bench.script.bodies] == [True]


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        (WireProtocol.RESPONSES, {"text": {"verbosity": "low"}}),
        (WireProtocol.MESSAGES, {"output_config": {"effort": "low"}}),
    ],
)
def test_what_stands_beside_the_form_stays(protocol, body):
    (key,) = body
    asked = request(protocol)
    asked = replace(asked, body={**asked.body, key: {**asked.body[key], **body[key]}})
    bench = Bench(protocol=protocol)
    bench.model.adopt(bench.heard, {"forms": False})
    assert bench.model.abilities.drop_form(asked)[key] == body[key]
    assert key not in bench.model.abilities.drop_form(request(protocol))


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("openai/gpt-6-luna", True),
        ("openai/gpt-4o-2024-05-13", False),
        ("openai/gpt-4-turbo", False),
        ("openai/o1-mini", False),
        ("openai/o3-mini", True),
        ("anthropic/claude-sonnet-4-6", True),
        ("anthropic/claude-3-5-sonnet-latest", False),
        ("anthropic/claude-opus-4-20250514", False),
        ("openai-compatible/qwen", False),
        ("vertex/claude-opus-4-7", False),
    ],
)
def test_only_models_that_document_it_are_asked_by_default(model, takes):
    assert provider_of(Settings(), model).takes_form(model.partition("/")[2]) is takes


@pytest.mark.parametrize(("said", "takes"), [(True, True), ({"qwen": True}, True), ({"other": True}, False)])
def test_the_settings_say_it_for_a_server_of_ones_own_or_for_one_of_its_models(said, takes):
    settings = make_settings(compatible={"answer_schema": said})
    assert provider_of(settings, "openai-compatible/qwen").takes_form("qwen") is takes

"""Answers that have to be JSON of a schema, as each wire asks for them."""

import json

import pytest
from pydantic import BaseModel

from dgm.messages import Reply
from tests.support import wire_conversations as talk
from tests.support.wire_server import Scripted, WireServer

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
ANSWER = json.dumps({"word": "ready"})
LOOSE = {**SCHEMA, "additionalProperties": True}
PARTIAL = {**SCHEMA, "required": []}


class Word(BaseModel):
    word: str


@pytest.fixture
def server():
    with WireServer(brain=Scripted([Reply(ANSWER)])) as opened:
        yield opened


def test_openais_client_parses_what_both_endpoints_answer(server):
    with talk.openai_client(server) as client:
        chat = client.chat.completions.parse(
            model=talk.GPT, messages=[{"role": "user", "content": "say"}], response_format=Word
        )
        responses = client.responses.parse(model=talk.GPT, input="say", text_format=Word)
    assert chat.choices[0].message.parsed == responses.output_parsed == Word(word="ready")


def test_anthropics_client_parses_what_is_answered(server):
    with talk.anthropic_client(server) as client:
        said = client.messages.parse(
            model=talk.CLAUDE,
            max_tokens=100,
            messages=[{"role": "user", "content": "say"}],
            output_format=Word,
        )
    assert said.parsed_output == Word(word="ready")


def test_any_object_may_be_asked_for(server):
    body = talk.small("/v1/chat/completions", response_format={"type": "json_object"})
    said = talk.raw(server, "/v1/chat/completions", body).json()
    assert said["choices"][0]["message"]["content"] == ANSWER


def formats(schema):
    """The question for a schema, on each wire."""
    named = {"name": "Word", "schema": schema, "strict": True}
    return {
        "/v1/chat/completions": {"response_format": {"type": "json_schema", "json_schema": named}},
        "/v1/responses": {"text": {"format": {"type": "json_schema", **named}}},
        "/v1/messages": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
    }


@pytest.mark.parametrize("path", formats(SCHEMA))
def test_a_schema_that_is_too_loose_is_refused(server, path):
    answer = talk.raw(server, path, talk.small(path, **formats(LOOSE)[path]))
    assert answer.status_code == 400
    assert "additionalProperties" in answer.json()["error"]["message"]


def test_strict_schemas_list_every_key(server):
    body = talk.small("/v1/responses", **formats(PARTIAL)["/v1/responses"])
    assert "Missing 'word'" in talk.raw(server, "/v1/responses", body).json()["error"]["message"]
    parameters = {**talk.RESPONSES_TOOL, "strict": True}
    body = talk.small("/v1/responses", tools=[parameters])
    assert "function 'bash'" in talk.raw(server, "/v1/responses", body).json()["error"]["message"]


@pytest.mark.parametrize("path", formats(SCHEMA))
@pytest.mark.parametrize("said", ["no JSON", "{}", "[]"])
def test_a_brain_that_does_not_obey_is_a_mistake_of_the_test(path, said):
    with WireServer(brain=Scripted([Reply(said)])) as server:
        answer = talk.raw(server, path, talk.small(path, **formats(SCHEMA)[path]))
    assert answer.status_code == 500
    assert "the test's brain" in answer.json()["error"]["message"]

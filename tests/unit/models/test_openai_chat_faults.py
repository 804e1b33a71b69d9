"""Chat Completions that are none: cut off, malformed, an error instead of an answer."""

import httpx2
import openai
import pytest

from dgm.models.dialect import Broken
from dgm.models.openai_chat import ChatDialect
from tests.unit.models.openai_chat_wire import COUNTED, GO, ask, chunk, completion, piece
from tests.unit.models.openai_mock import EVENTS, Server, Torn, page, stream, talk, whole


@pytest.mark.parametrize(("answer", "why"), [
    (whole(completion({}) | {"choices": []}), "no choice"),
    (whole(completion({}) | {"choices": None}), "no choice"),
    (whole({"id": "x"}), "no choice"),
    (whole([1]), "no object"),
    (page(), r"no JSON \(text/html"),
    (httpx2.Response(200, headers={"content-type": "application/json"}, text='{"choices": [{"mess'), "no JSON"),
    (whole(completion({"tool_calls": [{"id": "a", "function": {"arguments": ""}}]})), "no function"),
    (whole(completion({"tool_calls": [{"id": "a"}]})), "no function"),
    (whole(completion({}, "tool_calls")), "holds none"),
    (whole(completion({}, "error", error={"code": 502, "message": "upstream died"})), "upstream died"),
])  # fmt: skip
def test_what_is_no_answer_is_broken(answer, why):
    with pytest.raises(Broken, match=why):
        ask(answer, streamed=False)


@pytest.mark.parametrize(("answer", "why"), [
    (stream(chunk({"content": "Hel"})), "without a finish_reason"),
    (stream(chunk({"content": "Hel"}), end=""), "without a finish_reason"),
    (stream(end=""), "without a finish_reason"),
    (stream(COUNTED), "without a finish_reason"),
    (stream(chunk({"content": "a"}), "data: {\"choi\n\n"), "not JSON"),
    (stream("data: [1]\n\n"), "no JSON object"),
    (stream(chunk({"tool_calls": ["x"]}), chunk({}, "stop")), "no JSON object"),
    (stream(chunk(piece(0, "{}")), chunk({}, "tool_calls")), "no function"),
    (page(), "text/html where a stream"),
    (whole(completion({"content": "Hi."})), "application/json where a stream"),
])  # fmt: skip
def test_broken_stream_is_broken(answer, why):
    with pytest.raises(Broken, match=why):
        ask(answer, streamed=True)


def test_dead_connection_is_the_packages_error():
    body = Torn(b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n')
    for answer in (httpx2.Response(200, headers=EVENTS, stream=body), httpx2.ConnectError("refused")):
        with pytest.raises(openai.APIConnectionError):
            ask(answer, streamed=True)
    with pytest.raises(openai.APITimeoutError):
        ask(httpx2.ReadTimeout("nothing"), streamed=True)


def test_answer_that_is_whole_outlives_its_connection():
    whole_answer = stream(chunk({"content": "Hi."}, "stop"), COUNTED, end="").content
    body = Torn(whole_answer)
    assert ask(httpx2.Response(200, headers=EVENTS, stream=body)).text == "Hi."


ERROR = {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}


@pytest.mark.parametrize(("answer", "streamed"), [
    (whole(ERROR), False), (whole(ERROR), True), (stream(chunk({"content": "a"}), ERROR), True),
])  # fmt: skip
def test_error_in_an_answer_of_status_200_is_the_packages_error(answer, streamed):
    with pytest.raises(openai.APIError, match="slow down") as caught:
        ask(answer, streamed=streamed)
    assert caught.value.code == "rate_limit_exceeded"


def test_status_errors_are_the_packages_own_and_tried_once():
    server = Server(whole({"error": {"message": "no", "code": "invalid_api_key"}}, 401), whole(ERROR, 429))
    dialect = ChatDialect(server.client(), "m", True, compatible=False)
    with pytest.raises(openai.AuthenticationError):
        talk(dialect, GO)
    with pytest.raises(openai.RateLimitError):
        talk(ChatDialect(server.client(), "m", True, compatible=False), GO)
    assert len(server.requests) == 2

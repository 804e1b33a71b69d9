"""What each error of a provider means: try again, tell the agent, or call a person."""

import asyncio
import json
import ssl
from datetime import UTC, datetime

import anthropic
import httpx2
import openai
import pydantic
import pytest

from dgm.errors import Infrastructure, UserError
from dgm.messages import RequestRefused
from dgm.models.dialect import Broken
from dgm.models.faults import Answer, Permanent, Refused, Transient, fault_of, judged, waiting_time

KEY = "k3y-0123456789-abcdefghij-ZZ"
CONTEXT = "context_length_exceeded"


async def _openai(http):
    client = openai.AsyncOpenAI(api_key=KEY, base_url="http://test/v1", max_retries=0, http_client=http)
    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])


async def _openai_stream(http):
    client = openai.AsyncOpenAI(api_key=KEY, base_url="http://test/v1", max_retries=0, http_client=http)
    asked = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )
    async for _ in await asked:
        pass


async def _anthropic(http):
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url="http://test", max_retries=0, http_client=http)
    await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])


async def _anthropic_stream(http):
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url="http://test", max_retries=0, http_client=http)
    messages = [{"role": "user", "content": "x"}]
    async for _ in await client.messages.create(model="m", max_tokens=9, messages=messages, stream=True):
        pass


def error(ask, answer):
    """What the package raises when the provider gives ``answer``, or the transport raises it."""

    def respond(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def scenario():
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(respond)) as http:
            with pytest.raises(Exception) as caught:  # noqa: PT011  (that is what is looked at)
                await ask(http)
            return caught.value

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def openai_fault(status, body, **headers):
    return fault_of(error(_openai, httpx2.Response(status, json=body, headers=headers)), [KEY])


def anthropic_fault(status, kind, message, **headers):
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return fault_of(error(_anthropic, httpx2.Response(status, json=body, headers=headers)), [KEY])


def said(message, code=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 499, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_transient(status):
    overload = status in (429, 503, 529)
    assert openai_fault(status, said("Later.", kind="x")) == Transient(f"{status} Later.", None, overload)
    assert anthropic_fault(status, "x", "Later.") == Transient(f"{status} Later.", None, overload)


def test_how_long_to_wait_is_taken_from_the_answer():
    headers = {"retry-after": "7"}
    fault = openai_fault(429, said("Slow down", "rate_limit_exceeded", "requests"), **headers)
    assert fault == Transient("429 Slow down", 7.0, True)
    assert anthropic_fault(529, "overloaded_error", "Overloaded", **headers) == Transient(
        "529 Overloaded", 7.0, True
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, 300.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Sat, 99 Nov 2026 11:00:00 GMT"}, None),
    ],
)
def test_waiting_times(headers, seconds):
    assert waiting_time(httpx2.Headers(headers), datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("Your input is too large.", CONTEXT)),
        (400, said("This model's maximum context length is 128000 tokens. However, you requested 130000 tokens.")),
        (400, {"object": "error", "message": "This model's maximum context length is 8 tokens.", "code": 400}),
        (400, said("the request exceeds the available context size, try increasing it", kind="exceed")),
        (500, {"error": "input length exceeds maximum context length"}),
        (400, said("Input tokens exceed the configured limit of 272000 tokens.")),
        (413, said("Payload too large")),
        (429, said("Request too large for gpt-4o on tokens per min (TPM): Limit 3, Requested 4.", "rate")),
        (400, {"detail": "prompt is too long"}),
    ],
)  # fmt: skip
def test_too_long_a_conversation_is_told_to_the_agent(status, body):
    fault = openai_fault(status, body)
    assert isinstance(fault, Refused) and fault.code == CONTEXT


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (400, "invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum"),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        ),
        (413, "request_too_large", "Request exceeds the maximum size"),
    ],
)
def test_anthropics_words_for_too_long(status, kind, message):
    assert anthropic_fault(status, kind, message) == Refused(CONTEXT, message)


@pytest.mark.parametrize("status", [400, 422])
def test_other_bad_requests_are_told_to_the_agent(status):
    message = "tools.0.name: String should match pattern"
    assert openai_fault(status, said(message)) == Refused("invalid_request", message)
    assert anthropic_fault(status, "invalid_request_error", message) == Refused("invalid_request", message)


def test_filtered_content_is_told_to_the_agent():
    assert openai_fault(400, said("Filtered.", "content_filter")) == Refused("content_filter", "Filtered.")
    flagged = {"error": {"message": "Your input was flagged", "code": 403}}
    assert openai_fault(403, flagged) == Refused("content_filter", "Your input was flagged")


@pytest.mark.parametrize(
    ("status", "body", "key"),
    [
        (401, said("Incorrect API key provided", "invalid_api_key"), True),
        (402, said("Pay first"), False),
        (403, said("Country not supported", "unsupported_country"), True),
        (404, said("The model `x` does not exist", "model_not_found"), False),
        (404, {"detail": "Not Found"}, False),
        (405, {"detail": "Method Not Allowed"}, False),
        (429, said("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), False),
        (400, said("API key not valid", "invalid_api_key"), True),
    ],
)
def test_what_a_person_has_to_mend(status, body, key):
    fault = openai_fault(status, body)
    assert isinstance(fault, Permanent) and fault.key is key
    assert fault.message.startswith(str(status))


@pytest.mark.parametrize(
    ("status", "kind", "message", "key"),
    [
        (401, "authentication_error", "invalid x-api-key", True),
        (403, "permission_error", "not for you", True),
        (404, "not_found_error", "model: nope", False),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", False),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", False),
        (402, "billing_error", "pay", False),
    ],
)
def test_what_a_person_has_to_mend_with_anthropic(status, kind, message, key):
    assert anthropic_fault(status, kind, message) == Permanent(f"{status} {message}", key)


def stream(text):
    return httpx2.Response(200, content=text, headers={"content-type": "text/event-stream"})


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("overloaded_error", Transient("529 So.", None, True)),
        ("rate_limit_error", Transient("429 So.", None, True)),
        ("api_error", Transient("500 So.")),
        ("something_new", Transient("So.")),
        ("invalid_request_error", Refused("invalid_request", "So.")),
        ("authentication_error", Permanent("401 So.", True)),
    ],
)
def test_errors_in_the_midst_of_a_stream(kind, fault):
    event = {"type": "error", "error": {"type": kind, "message": "So."}}
    raised = error(_anthropic_stream, stream(f"event: error\ndata: {json.dumps(event)}\n\n"))
    assert fault_of(raised) == fault


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"message": "So.", "type": "server_error", "code": None}, Transient("500 So.")),
        (
            {"message": "So.", "type": "tokens", "code": "rate_limit_exceeded"},
            Transient("429 So.", None, True),
        ),
        ({"message": "So.", "code": CONTEXT}, Refused(CONTEXT, "So.")),
        ({"message": "So.", "code": "insufficient_quota"}, Permanent("So.")),
        ({"message": "So.", "code": 502}, Transient("502 So.")),
        ({"message": "So.", "type": "BadRequestError", "code": 400}, Refused("invalid_request", "So.")),
    ],
)
def test_errors_in_the_midst_of_openais_stream(record, fault):
    raised = error(_openai_stream, stream(f"data: {json.dumps({'error': record})}\n\n"))
    assert fault_of(raised) == fault


REQUEST = httpx2.Request("POST", "http://test/v1")


@pytest.mark.parametrize("ask", [_openai, _anthropic])
@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (httpx2.ConnectError("refused", request=REQUEST), "connect error: refused"),
        (httpx2.ReadError("reset", request=REQUEST), "read error: reset"),
        (httpx2.RemoteProtocolError("peer closed", request=REQUEST), "remote protocol error: peer closed"),
        (httpx2.ReadTimeout("", request=REQUEST), "read timeout"),
        (ssl.SSLError("bad record"), "bad record"),
    ],
)
def test_the_transports_errors_are_transient_and_say_what_it_was(ask, cause, words):
    fault = fault_of(error(ask, cause))
    assert isinstance(fault, Transient) and words in fault.reason and not fault.overload


@pytest.mark.parametrize("ask", [_openai, _anthropic])
def test_an_address_that_cannot_be_one_is_permanent(ask):
    fault = fault_of(error(ask, httpx2.UnsupportedProtocol("no http://", request=REQUEST)))
    assert isinstance(fault, Permanent) and "address" in fault.message


class Number(pydantic.BaseModel):
    value: int


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as caught:  # noqa: BLE001
        return caught
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    "escaped",
    [
        Broken("no choice in it"),
        httpx2.ReadError("reset"),
        httpx2.DecodingError("bad gzip"),
        ConnectionResetError("reset"),
        TimeoutError(),
        asyncio.IncompleteReadError(b"", 3),
        raised(json.loads, "{"),
        raised(b"\xff".decode),
        raised(Number.model_validate, {"value": "x"}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_escapes_while_an_answer_streams_in_is_transient(escaped):
    fault = fault_of(escaped)
    assert isinstance(fault, Transient) and fault.reason and "\n" not in fault.reason


@pytest.mark.parametrize(
    "own", [TypeError("x"), KeyError("x"), ValueError("x"), UserError("x"), Infrastructure("x")]
)
def test_what_is_not_the_providers_is_no_fault(own):
    assert fault_of(own) is None


def test_a_dialects_own_refusal_stays_one():
    assert fault_of(RequestRefused("refused", "a\nb")) == Refused("refused", "a b")


def test_messages_are_one_bounded_line_without_keys():
    message = f"Wrong key {KEY}\nand sk-ant-abcdefgh1234 too\t" + "x" * 1000
    for fault in (openai_fault(401, said(message)), anthropic_fault(401, "authentication_error", message)):
        assert isinstance(fault, Permanent)
        assert fault.message.startswith("401 Wrong key *** and sk-*** too xxx")
        assert len(fault.message) == 300 and "\n" not in fault.message


@pytest.mark.parametrize("ask", [_openai, _anthropic])
@pytest.mark.parametrize(
    "content", [b"", b"<h1>\nBad gateway</h1>", b'{"err', b"[1]", b'"x"', b"null", b"\xff\xfe"]
)
def test_whatever_a_broken_proxy_answers_is_one_line(ask, content):
    fault = fault_of(error(ask, httpx2.Response(502, content=content)))
    assert isinstance(fault, Transient) and fault.reason.startswith("502") and "\n" not in fault.reason


def test_what_an_agent_sent_and_a_400_quotes_is_no_word_about_money():
    quoted = judged(Answer(400, frozenset(), "no tool output found for call insufficient_quota"))
    assert isinstance(quoted, Refused)
    assert isinstance(judged(Answer(400, frozenset(), "Your credit balance is too low to go on")), Permanent)


@pytest.mark.parametrize(
    ("status", "said"), [(429, "Too many tokens, please wait"), (503, "no slot: context size exceeded")]
)
def test_a_busy_provider_that_speaks_of_tokens_is_not_told_to_the_agent(status, said):
    assert isinstance(judged(Answer(status, frozenset(), said)), Transient)

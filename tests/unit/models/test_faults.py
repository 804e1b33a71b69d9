"""What errors of the connection and of a vendor's package mean, and how long a provider asks to wait."""

import ssl
from datetime import UTC, datetime

import aiohttp
import httpx2
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from dgm.errors import Infrastructure, UserError
from dgm.messages import WireProtocol
from dgm.models.faults import Retry, TellAgent, UserMustAct, judge_refusal, judge_transport
from dgm.models.refusals import read_refusal, reset_time, waiting_time

KEY = "k3y-0123456789-abcdefghij-ZZ"
CONTEXT = "context_length_exceeded"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9}


def judged(status, body, protocol=WireProtocol.CHAT, **headers):
    return judge_refusal(read_refusal(status, body, httpx2.Headers(headers)), ASKED, protocol, secrets=[KEY])


def anthropics(status, kind, message, **headers):
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return judged(status, body, WireProtocol.MESSAGES, **headers)


def said(message, code=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 499, 500, 502, 503, 504, 520, 529])
def test_what_may_pass(status):
    overload = status in (429, 503, 529)
    assert judged(status, said("Later.", kind="x")) == Retry(f"{status} Later.", None, overload)
    assert anthropics(status, "x", "Later.") == Retry(f"{status} Later.", None, overload)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:00 GMT"}, 86400.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Sat, 99 Nov 2026 11:00:00 GMT"}, None),
    ],
)
def test_waiting_times(headers, seconds):
    assert waiting_time(httpx2.Headers(headers), datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "3"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-reset": "30", "x-ratelimit-remaining": "0"}, 30.0),
        ({"x-ratelimit-reset": "1795262460", "x-ratelimit-remaining": "0"}, 60.0),
        ({"x-ratelimit-reset": "1795262460000", "x-ratelimit-remaining": "0"}, 60.0),
        (
            {
                "anthropic-ratelimit-tokens-reset": "2026-11-21T12:00:45Z",
                "anthropic-ratelimit-tokens-remaining": "0",
            },
            45.0,
        ),
        ({"ratelimit-reset": "soon", "ratelimit-remaining": "0"}, None),
    ],
)
def test_resets_of_limits_that_are_used_up(headers, seconds):
    assert reset_time(httpx2.Headers(headers), datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 1m30s.", 90.0),
        ("Please try again in 9m38.5s", 578.5),
        ("try again in 2h5m", 7500.0),
        ("try again in 250ms", 0.25),
        ("Please retry after 5 seconds.", 5.0),
        ("Please retry in 38.5s.", 38.5),
        ("It resets in 3 hours", 10800.0),
        ("wait 8 hours 24 minutes and try again", 30240.0),
        ("Please wait 41212 seconds before retrying.", 41212.0),
        ("try again in 1 day and 2 hours", 93600.0),
        ("Please try again later.", None),
        ("try again in a moment", None),
        ("try again in 5 models", None),
    ],
)
def test_waiting_times_in_words(text, seconds):
    assert judged(429, said(text)).retry_after_s == seconds
    assert judged(429, said(text), **{"retry-after": "1"}).retry_after_s == 1.0


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"message": "So.", "type": "server_error", "code": None}, Retry("500 So.")),
        (
            {"message": "So.", "type": "tokens", "code": "rate_limit_exceeded"},
            Retry("429 So.", None, True),
        ),
        ({"message": "So.", "code": CONTEXT}, TellAgent(CONTEXT, "So.")),
        ({"message": "So.", "code": "insufficient_quota"}, UserMustAct("So.")),
        ({"message": "So.", "code": 502}, Retry("502 So.")),
        (
            {"message": "messages[0]", "type": "BadRequestError", "code": 400},
            TellAgent("invalid_request", "messages[0]"),
        ),
    ],
)
def test_errors_in_the_midst_of_openais_stream(record, fault):
    assert judged(200, {"error": record}) == fault


PROXY = aiohttp.RequestInfo(URL("http://provider.example"), "POST", CIMultiDictProxy(CIMultiDict()))
CAUSES = [
    (aiohttp.ServerDisconnectedError("peer closed"), "server disconnected error: peer closed"),
    (aiohttp.ClientPayloadError("reset"), "client payload error: reset"),
    (aiohttp.ConnectionTimeoutError("no route"), "connection timeout error: no route"),
    (aiohttp.SocketTimeoutError(), "socket timeout error"),
    (ssl.SSLError("bad record"), "bad record"),
]


@pytest.mark.parametrize(("cause", "words"), CAUSES)
def test_errors_of_the_transport_pass_and_say_what_it_was(cause, words):
    fault = judge_transport(cause)
    assert isinstance(fault, Retry) and words in fault.reason and not fault.overload


def test_an_address_that_cannot_be_one_is_left_to_a_person():
    fault = judge_transport(aiohttp.NonHttpUrlClientError("ftp://p.example"))
    assert isinstance(fault, UserMustAct) and "address" in fault.message


@pytest.mark.parametrize(("status", "outcome"), [(407, UserMustAct), (403, UserMustAct), (502, Retry)])
def test_a_proxy_that_refuses_is_named(status, outcome):
    fault = judge_transport(aiohttp.ClientHttpProxyError(PROXY, (), status=status))
    assert isinstance(fault, outcome)
    assert outcome is Retry or "HTTPS_PROXY" in fault.message


@pytest.mark.parametrize(
    "own", [TypeError("x"), KeyError("x"), ValueError("x"), UserError("x"), Infrastructure("x")]
)
def test_what_is_not_the_providers_is_no_fault(own):
    assert judge_transport(own) is None

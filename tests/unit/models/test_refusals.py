"""What a provider's refusal leads to: retry, tell the agent, the user must act, or a repair."""

import json
import time
from pathlib import Path

import pytest

from dgm.messages import WireProtocol
from dgm.models.abilities import Abilities
from dgm.models.faults import Repair, Retry, TellAgent, UserMustAct, judge_refusal
from dgm.models.refusals import LONGEST_S, read_refusal, requested_wait
from tests.support.models.rate_limits import read_limit_answers

SEEN = [
    json.loads(line)
    for line in Path(__file__).with_name("refusals.jsonl").read_text(encoding="utf-8").splitlines()
]
"""One refusal a line: as it comes, what the request held beside a message, and what is right."""
OUTCOMES = {"retry": Retry, "tell": TellAgent, "user": UserMustAct, "repair": Repair}
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}


def judged(status, body, asked=(), protocol="chat", headers=None, **more):
    return judge_refusal(
        read_refusal(status, body, headers), {**HELLO, **dict(asked)}, WireProtocol(protocol), **more
    )


@pytest.mark.parametrize("seen", SEEN, ids=[f"{n}-{one['outcome']}" for n, one in enumerate(SEEN, 1)])
def test_refusals_of_real_providers(seen):
    asked, protocol = seen.get("asked", {}), seen.get("protocol", "chat")
    fault = judged(seen["status"], seen["body"], asked, protocol, seen.get("headers"))

    assert type(fault) is OUTCOMES[seen["outcome"]], fault
    for name, right in seen.get("right", {}).items():
        value = getattr(fault, name)
        assert (value.as_record() if name == "change" else value) == right


@pytest.mark.parametrize("seen", [one for one in SEEN if one["outcome"] == "repair"])
def test_repairs_of_one_refusal_come_to_an_end(seen):
    """However often the same is refused: each change teaches something, or asking again stops."""
    protocol = WireProtocol(seen.get("protocol", "chat"))
    asked, known = {**HELLO, **seen.get("asked", {})}, Abilities()
    for _ in range(20):
        fault = judge_refusal(read_refusal(seen["status"], seen["body"]), known.apply(asked), protocol)
        if not isinstance(fault, Repair) or known.learn(fault.change) == known:
            return
        known = known.learn(fault.change)
    raise AssertionError("there is no end")


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 410, 418, 422, 500, 503, 599])
@pytest.mark.parametrize(
    "content",
    [b"", b"<h1>\nBad gateway</h1>", b'{"err', b"[1]", b'"x"', b"null", b"\xff\xfe", b"{}", b"[[[[]]]]"],
)
def test_whatever_is_answered_has_a_meaning(status, content):
    fault = judged(status, content)
    said = getattr(fault, "reason", "") or getattr(fault, "message", "")
    assert "\n" not in said and len(said) <= 600


QUOTES = [
    "Your credit balance is too low to go on",
    "the account is suspended",
    "Incorrect API key provided",
    "insufficient balance",
    "Rate limit reached, try again later",
    "flagged by content filter",
]


@pytest.mark.parametrize("quote", QUOTES)
def test_what_an_agent_sent_is_no_word_about_an_account(quote):
    body = {
        "error": {
            "message": f"Invalid value for messages[1].role: '{quote}'.",
            "type": "invalid_request_error",
        }
    }
    turns = [*HELLO["messages"], {"role": quote, "content": "x"}]
    assert isinstance(judged(400, body, {"messages": turns}), TellAgent)
    said = {"error": {"message": quote, "type": "invalid_request_error"}}
    fault = judged(400, said)
    assert not isinstance(fault, TellAgent) or fault.code == "content_filter", "of the provider's own it is"


def test_messages_are_one_bounded_line_without_keys():
    key = "k3y-0123456789-abcdefghij-ZZ"
    said = {"error": {"message": f"Wrong key {key}\nand sk-ant-abcdefgh1234 too\t" + "x" * 1000}}
    fault = judged(401, said, secrets=[key])
    assert isinstance(fault, UserMustAct) and fault.key
    assert fault.message.startswith("401 Wrong key *** and sk-*** too xxx")
    assert len(fault.message) == 600 and "\n" not in fault.message


@pytest.mark.parametrize(
    "content",
    [
        b"<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>",
        b"<html><title>Payload</title><body>The request is too large. Reduce the size of your request.</body></html>",
        b"Request body too large: the context of this proxy is limited",
        {"error": {"message": "Request body too large", "type": "request_too_large"}},
    ],
)
def test_a_body_that_a_proxy_does_not_take_is_no_limit_of_the_context(content):
    fault = judged(413, content, {"max_tokens": 16000})
    assert isinstance(fault, TellAgent) and fault.code == "request_too_large"


@pytest.mark.parametrize(
    ("message", "headers", "seconds"),
    [
        ("slow down", {"retry-after": "1e300"}, LONGEST_S),
        ("slow down", {"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, None),
        (f"try again in {'9' * 400} days", {}, LONGEST_S),
        ("try again in 20 s", {"retry-after": "never"}, 20.0),
    ],
)
def test_no_wait_is_longer_than_a_clock_holds(message, headers, seconds):
    assert requested_wait(read_refusal(429, {"error": {"message": message}}, headers)) == seconds


LIMITS = read_limit_answers()


@pytest.mark.parametrize("limit", LIMITS, ids=[f"{one.vendor}: {one.limit}" for one in LIMITS])
def test_a_rate_limit_is_waited_for_and_an_empty_account_is_not(limit):
    answer = limit.refused(time.time())
    refusal = read_refusal(answer.status, answer.raw, answer.headers)
    fault = judge_refusal(refusal, HELLO, limit.protocol)
    assert type(fault) is {"passing": Retry, "account": UserMustAct}[limit.meaning]
    if limit.meaning == "passing":
        assert fault.retry_after_s == (limit.wait_s and pytest.approx(limit.wait_s, abs=5))
        assert fault.overload


def test_a_403_is_a_firewall_only_where_it_is_no_json():
    assert judged(403, {"error": {"message": "Nope."}}) == UserMustAct("403 Nope.", key=True)
    assert judged(403, "<title>Nope.</title>") == TellAgent("blocked_by_firewall", "Nope.")

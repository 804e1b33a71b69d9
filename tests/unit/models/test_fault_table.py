"""The table that says whose fault a refusal is: its form, its page, and what many providers answer."""

import json
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from dgm.messages import WireProtocol
from dgm.models.abilities import Abilities
from dgm.models.fault_kinds import (
    AccountFault,
    AgentRequestFault,
    ContentRefused,
    MalformedOutput,
    TemporaryFault,
    UnsupportedPart,
    UnsupportedRequest,
)
from dgm.models.fault_table import TESTS, RefusalMeaning, read_fault_rows
from dgm.models.faults import judge_refusal
from dgm.models.refusals import read_refusal

ROOT = Path(__file__).parents[3]
SEEN = [
    json.loads(line)
    for line in Path(__file__).with_name("refusals.jsonl").read_text(encoding="utf-8").splitlines()
]
"""One refusal a line: as it comes, what the request held beside a message, and what is right."""
FAULTS = {
    "passing": TemporaryFault,
    "sampled": MalformedOutput,
    "asked": AgentRequestFault,
    "single": ContentRefused,
    "ability": UnsupportedPart,
    "unable": UnsupportedRequest,
    "account": AccountFault,
}
"""The word of the table → the fault that it makes."""
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def judged(status, body, asked=(), protocol="chat", headers=None, **more):
    return judge_refusal(
        read_refusal(status, body, headers), {**HELLO, **dict(asked)}, WireProtocol(protocol), **more
    )


@pytest.mark.parametrize("seen", SEEN, ids=[f"{n}-{one['meaning']}" for n, one in enumerate(SEEN, 1)])
def test_refusals_mean_what_they_say(seen):
    asked, protocol = seen.get("asked", {}), seen.get("protocol", "chat")
    fault = judged(seen["status"], seen["body"], asked, protocol, seen.get("headers"))

    assert type(fault) is FAULTS[seen["meaning"]], fault
    for name, right in seen.get("right", {}).items():
        told = getattr(fault, name)
        assert (told.as_record() if name == "change" else told) == right


@pytest.mark.parametrize("seen", [one for one in SEEN if one["meaning"] == "ability"])
def test_asking_again_with_what_was_learned_ends(seen):
    """However often the same is refused: each change teaches something, or asking again stops."""
    protocol = WireProtocol(seen.get("protocol", "chat"))
    asked, known, sent = {**HELLO, **seen.get("asked", {})}, Abilities(), {"anthropic-beta": "x"}
    for _ in range(20):
        body = known.apply(asked, protocol)
        fault = judge_refusal(
            read_refusal(seen["status"], seen["body"]), body, protocol, sent=known.apply_headers(sent)
        )
        if not isinstance(fault, UnsupportedPart):
            return
        if known.learn(fault.change) == known:
            return
        known = known.learn(fault.change)
    raise AssertionError("there is no end")


def test_every_row_is_well_formed():
    names = [row.id for row in read_fault_rows()]
    assert len(set(names)) == len(names)
    for row in read_fault_rows():
        assert re.fullmatch(r"[a-z_]+", row.id)
        assert row.test in ("", *TESTS)
        assert row.meaning is not RefusalMeaning.ABILITY or row.test, "a lesson is read by a test"
        assert row.key is False or row.meaning is RefusalMeaning.ACCOUNT
        for pattern in (*row.words, *row.says, *row.unless):
            assert re.compile(pattern).search("") is None, "a pattern that fits everything"
        for sentence in (row.seen, row.happens, row.reads):
            assert sentence.endswith("."), sentence
    assert not (
        read_fault_rows()[-1].words
        or read_fault_rows()[-1].says
        or read_fault_rows()[-1].statuses
        or read_fault_rows()[-1].test
    )


def test_every_meaning_is_seen():
    assert set(Counter(one["meaning"] for one in SEEN)) == {meaning.value for meaning in RefusalMeaning}


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 410, 418, 422, 500, 503, 599])
@pytest.mark.parametrize(
    "content",
    [b"", b"<h1>\nBad gateway</h1>", b'{"err', b"[1]", b'"x"', b"null", b"\xff\xfe", b"{}", b"[[[[]]]]"],
)
def test_whatever_is_answered_has_a_meaning(status, content):
    fault = judged(status, content)
    said = getattr(fault, "reason", "") or getattr(fault, "message", "")
    assert "\n" not in said and len(said) <= 600
    assert not isinstance(fault, AgentRequestFault), "nothing says that the agent is at fault"


def test_the_page_is_what_its_program_makes():
    program = runpy.run_path(str(ROOT / "docs" / "providers" / "make_page.py"))
    assert program["page"]() == (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")


def test_a_turn_is_never_left_out():
    said = {
        "detail": [{"loc": ["body", "messages", 0, "assistant", "reasoning_content"], "msg": "Extra inputs"}]
    }
    assert isinstance(judged(422, said), AgentRequestFault)


@pytest.mark.parametrize("name", ["temperature", "top_k", "seed", "stop", "user", "metadata", "n"])
def test_a_parameter_that_is_not_in_the_body_is_not_blamed(name):
    said = {
        "error": {
            "message": f"Unsupported parameter: '{name}'",
            "param": name,
            "code": "unsupported_parameter",
        }
    }
    assert not isinstance(judged(400, said), UnsupportedPart | AgentRequestFault)


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
    assert isinstance(judged(400, body, {"messages": turns}), AgentRequestFault)
    said = {"error": {"message": quote, "type": "invalid_request_error"}}
    assert not isinstance(judged(400, said), AgentRequestFault | UnsupportedRequest), (
        "of the provider's own it is"
    )


def test_messages_are_one_bounded_line_without_keys():
    key = "k3y-0123456789-abcdefghij-ZZ"
    said = {"error": {"message": f"Wrong key {key}\nand sk-ant-abcdefgh1234 too\t" + "x" * 1000}}
    fault = judged(401, said, secrets=[key])
    assert isinstance(fault, AccountFault) and fault.key
    assert fault.message.startswith("401 Wrong key *** and sk-*** too xxx")
    assert len(fault.message) == 600 and "\n" not in fault.message


def test_a_wrong_address_says_that_v1_may_be_missing():
    for content in ("404 page not found", {"detail": "Not Found"}):
        fault = judged(404, content)
        assert isinstance(fault, AccountFault) and "/v1 may be missing" in fault.message


def test_a_hint_stays_whole_behind_a_long_message():
    fault = judged(404, "not found " + "x" * 900)
    assert isinstance(fault, AccountFault) and fault.message.endswith("/v1 may be missing at its end)")
    assert len(fault.message) == 600


def test_images_are_told_apart_from_a_broken_image():
    asked = {"messages": [{"role": "user", "content": [IMAGE]}]}
    assert isinstance(judged(400, {"error": "model does not support image input"}, asked), UnsupportedRequest)
    assert isinstance(judged(400, {"error": "unsupported image format: image/xyz"}, asked), AgentRequestFault)


def test_headers_that_were_not_sent_are_not_blamed():
    said = {"error": {"message": "invalid beta flag", "type": "invalid_request_error"}}
    assert isinstance(judged(400, said, protocol="messages", sent={"anthropic-beta": "x"}), UnsupportedPart)
    assert isinstance(judged(400, said, protocol="messages", sent={}), UnsupportedRequest)


def test_the_providers_own_code_is_told():
    body = {"error": {"message": "messages[0].content is missing", "code": "missing_content"}}
    assert judged(400, body) == AgentRequestFault("missing_content", "messages[0].content is missing")
    assert judged(413, b"") == ContentRefused("request_too_large", "(the answer is empty)")


def test_every_meaning_has_a_fault():
    assert set(FAULTS) == {meaning.value for meaning in RefusalMeaning}


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
    assert isinstance(fault, ContentRefused) and fault.code == "request_too_large"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {"error": {"explanation": "Your tenant has no access to this."}},
            "Your tenant has no access to this.",
        ),
        (
            {"error": {"message": "Bad request", "cause": {"text": "No such region here."}}},
            "No such region here.",
        ),
        (
            {"fault": {"faultstring": "The policy forbids it. " * 20}},
            ("The policy forbids it. " * 20).strip(),
        ),
        ({"code": 7}, '{"code": 7}'),
    ],
)
def test_a_text_under_an_unknown_key_is_shown_whole(body, text):
    fault = judged(401, body)
    assert isinstance(fault, AccountFault) and fault.message == f"401 {text}"


@pytest.mark.parametrize("status", [200, 400, 404, 500, 503])
@pytest.mark.parametrize(
    "text", ["Model is unloaded.", "The model is still loading", "Loading the model", "Model unloaded."]
)
def test_a_local_server_that_loads_its_model_is_waited_for(status, text):
    fault = judged(status, {"error": text})
    assert isinstance(fault, TemporaryFault) and fault.overload


def test_a_model_that_nobody_loads_is_left_to_the_user():
    assert isinstance(judged(404, {"error": "No models loaded. Please load a model."}), AccountFault)

"""Streamed chat completions pass as they came; what openai's client could not read is mended on the way."""

import pytest

from dgm.messages import Stop
from dgm.wires.wire import ErrorInAnswer, UnusableReply
from tests.support.wires.chat_script import COUNTED, WIRE, both, call, chunk
from tests.support.wires.vendors import BODIES, CHAT, passed, sse


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([chunk({"content": "x"})], "stop"),
        ([chunk({"content": "x"}), call(0, "bash", "{}", "a")], "tool_calls"),
    ],
)
@pytest.mark.parametrize("null", [None, ""])
def test_missing_finish_reason_is_added_before_done(events, reason, null):
    theirs, ours = both(*events, chunk(finish=null))
    assert theirs.choices[0].finish_reason == ours["choices"][0]["finish_reason"] == reason


def test_stream_without_any_end_may_be_accepted_the_second_time():
    fold = WIRE.fold(BODIES[CHAT])
    fold.take(chunk({"content": "x"}), "")
    with pytest.raises(UnusableReply) as told:
        fold.finish(done=False)
    assert told.value.reply_whole["choices"][0]["finish_reason"] == "stop"
    fold.finish(done=True)
    assert fold.whole()["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    "events", [[], [{**chunk(), "choices": []}], [chunk()], [call(0, "bash", '{"a', "x")]]
)
def test_answer_that_cannot_be_whole_is_unreadable(events, done):
    fold = WIRE.fold(BODIES[CHAT])
    for event in events:
        fold.take(event, "")
    with pytest.raises(UnusableReply) as told:
        fold.finish(done=done)
    assert told.value.reply_whole is None


def test_missing_usage_is_estimated_where_it_was_asked_for():
    theirs, ours = both(chunk({"content": "x" * 400}), chunk(finish="stop"), request=COUNTED)
    assert theirs.usage.completion_tokens == ours["usage"]["completion_tokens"] == 100


@pytest.mark.parametrize("broken", [{"choices": None}, {"choices": [{"index": 0, "delta": None}]}])
def test_null_where_a_record_belongs_is_mended(broken):
    theirs, _ = both({**chunk(), **broken}, chunk({"content": "x"}), chunk(finish="stop"))
    assert theirs.choices[0].message.content == "x"


def test_every_field_is_kept():
    events = [
        chunk(
            {
                "role": "assistant",
                "reasoning_content": "a",
                "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}],
            }
        ),
        chunk(
            {
                "reasoning_content": "b",
                "reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0, "signature": "s"}],
            }
        ),
        chunk({"content": "x", "annotations": [{"type": "url_citation", "url": "1"}]}),
        chunk({"content": "y", "annotations": [{"type": "url_citation", "url": "2"}], "refusal": "no"}),
        chunk(finish="stop", system_fingerprint="f", service_tier="default"),
    ]
    for event in events[2:4]:
        event["choices"][0]["logprobs"] = {"content": [{"token": "t", "logprob": -1}], "refusal": None}
    answer, _ = passed(CHAT, sse(*events))
    whole = answer.whole
    assert (whole["system_fingerprint"], whole["service_tier"]) == ("f", "default")
    choice = whole["choices"][0]
    assert len(choice["logprobs"]["content"]) == 2
    assert choice["message"] == {
        "role": "assistant",
        "content": "xy",
        "reasoning_content": "ab",
        "reasoning_details": [{"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"}],
        "annotations": [{"type": "url_citation", "url": "1"}, {"type": "url_citation", "url": "2"}],
        "refusal": "no",
    }


@pytest.mark.parametrize(
    ("event", "name", "status"),
    [
        ({"error": {"message": "busy", "code": 503}}, "", 503),
        ({"error": "busy"}, "", None),
        ({"object": "error", "message": "busy", "code": 400}, "", 400),
        ({"message": "busy"}, "error", None),
        ({**chunk(finish="error"), "error": {"code": 502, "message": "busy"}}, "", 502),
        (
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {"content": ""},
                        "finish_reason": "error",
                        "error": {"code": 502, "message": "busy"},
                    }
                ]
            },
            "",
            502,
        ),
        (chunk(finish="insufficient_system_resource"), "", None),
        (chunk(finish="function_call_filter: MALFORMED_FUNCTION_CALL"), "", None),
        ({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "busy"}}, "", None),
    ],
)
def test_errors_within_a_stream_are_raised(event, name, status):
    with pytest.raises(ErrorInAnswer) as told:
        WIRE.fold(BODIES[CHAT]).take(event, name)
    assert told.value.status == status
    assert "busy" in str(told.value) or "gave up" in str(told.value)


def test_parts_and_text_become_one_content():
    events = [
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        chunk({"content": "a"}),
        chunk({"content": "b"}),
    ]
    answer, _ = passed(CHAT, sse(*events, chunk(finish="stop")))
    assert answer.whole["choices"][0]["message"]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "ab"},
    ]
    assert WIRE.stop(answer.whole) is Stop.END

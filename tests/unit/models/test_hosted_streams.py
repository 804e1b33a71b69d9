"""A hosted model's streams: handed on as they come, asked again where nothing was said, taken back where it was."""

import json

import aiohttp
import pytest

from dgm.errors import Infrastructure
from tests.support.models.connection_script import (
    DONE,
    KEY,
    STREAM,
    USAGE_CHUNK,
    Bench,
    answer,
    chunk,
    record,
    streamed,
    text_of,
    well,
)

WITHOUT_USAGE = b"".join(piece for piece in STREAM if piece != USAGE_CHUNK)
COMMENT = b": still here\n\n"
OVERLOADED = record({"error": {"message": "The engine is overloaded", "code": 503}})


def said(content):
    """The text of a streamed answer."""
    lines = [line[6:] for line in content.decode().splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_stream_is_handed_on_byte_for_byte_and_its_end_is_kept_back():
    bench = Bench(streamed(*STREAM))
    reply = bench.ask(stream=True, stream_options={"include_usage": True})
    assert (reply.content, reply.stream) == (b"".join(STREAM), True)
    assert bench.log.passed == b"".join(STREAM[:2])
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (30, 4)
    assert bench.script.places == [("/chat/completions", True)]


def test_overload_before_any_content_is_asked_again_unseen():
    role = chunk({"role": "assistant", "content": ""})
    bench = Bench(streamed(OVERLOADED), streamed(role, OVERLOADED), streamed(*STREAM))
    reply = bench.ask(stream=True)
    assert reply.content == WITHOUT_USAGE
    assert bench.log.passed == b"".join(STREAM[:2])
    assert [one.output_tokens for one in bench.log.wasted] == [0, 0]


@pytest.mark.parametrize("broken", [OVERLOADED, aiohttp.ClientPayloadError("reset")])
def test_stream_that_breaks_after_content_is_taken_back_and_asked_again(broken):
    bench = Bench(streamed(chunk({"content": "Once " * 40}), broken), streamed(*STREAM))
    reply = bench.ask(stream=True)
    assert said(reply.content) == "Here."
    (wasted,) = bench.log.wasted
    assert (wasted.calls, wasted.input_tokens > 0, 40 <= wasted.output_tokens <= 60) == (0, True, True)
    assert bench.log.events.index("take back") < bench.log.events.index("sending", 3)


def test_comments_alone_are_no_progress():
    bench = Bench(streamed(*(one for _ in range(9) for one in (40, COMMENT))), access={"timeout_s": 100.0})
    assert said(bench.ask(stream=True).content) == "Here."
    assert bench.script.gaps == [pytest.approx(100, abs=2)]


def test_stuck_answers_are_given_up_in_the_end():
    bench = Bench(*(streamed(1e6) for _ in range(9)), access={"timeout_s": 100.0})
    with pytest.raises(Infrastructure, match="no progress of the answer for 100 s"):
        bench.ask(stream=True)
    assert len(bench.script.at) == 3


def test_stream_without_any_sign_of_its_end_is_asked_for_once_more_and_then_accepted():
    bench = Bench(*(streamed(*STREAM[:2]) for _ in range(9)), tries=8)
    reply = bench.ask(stream=True)
    assert said(reply.content) == "Here."
    assert reply.content.endswith(DONE)
    assert len(bench.script.at) == 2


@pytest.mark.parametrize("broken", [OVERLOADED, aiohttp.ClientPayloadError("reset")])
@pytest.mark.parametrize("at_once", [False, True])
def test_what_breaks_behind_the_end_is_no_fault(broken, at_once):
    pieces = [*STREAM[:3], broken]
    if at_once and broken is OVERLOADED:
        pieces = [b"".join(pieces)]
    bench = Bench(streamed(*pieces))
    assert bench.ask(stream=True).content == WITHOUT_USAGE
    assert len(bench.script.at) == 1


def test_key_within_a_stream_is_masked():
    bench = Bench(streamed(chunk({"content": f"It is {KEY}."}), *STREAM[2:]))
    reply = bench.ask(stream=True)
    assert said(reply.content) == "It is ***."
    assert KEY.encode() not in bench.log.passed


# Providers that stream never, or always


@pytest.mark.parametrize("way", ["refused", "setting", "ignored"])
def test_agent_gets_a_stream_of_a_provider_that_does_not_stream(way):
    refusal = answer(400, "stream: streaming is not supported for this model", param="stream")
    steps = [refusal, well()] if way == "refused" else [well()]
    bench = Bench(*steps, access={"stream": way != "setting"})
    reply = bench.ask(stream=True)
    assert reply.stream
    assert said(reply.content) == "Here."
    assert reply.content.endswith(DONE)
    if way != "ignored":
        assert not bench.script.bodies[-1].get("stream")
        assert "stream_options" not in bench.script.bodies[-1]
    assert bool(bench.heard.lessons) is (way == "refused")


def test_whole_answer_of_a_provider_that_only_streams():
    refusal = answer(400, "This model only supports streaming: stream must be set to true")
    bench = Bench(refusal, streamed(*STREAM))
    reply = bench.ask()
    assert not reply.stream
    assert text_of(reply) == "Here."
    assert json.loads(reply.content)["choices"][0]["finish_reason"] == "stop"
    assert bench.log.passed == b""

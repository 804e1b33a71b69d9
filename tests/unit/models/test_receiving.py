"""An answer is read in pieces: what can be read is handed on as it comes, and what is odd waits for the end."""

import json

import pytest

from dgm.models import receiving
from dgm.models.receiving import AnswerReader
from dgm.wires import WIRES
from dgm.wires.stream import read_block
from dgm.wires.wire import UnusableReply
from tests.support.wires.chat_script import chunk, piece
from tests.support.wires.vendors import BODIES, CHAT, RESPONSES, ask, passed, sse, streamed

KEY = "sk-proj-0123456789abcdef"
A, B = '{"a":1}', '{"b":2}'
DONE = b"data: [DONE]\n\n"


def reader_of(protocol=CHAT, secrets=(), streamed=True, **asked):
    body = {**BODIES[protocol], "stream": True, **asked}
    return AnswerReader(
        WIRES[protocol], body, body, tuple(secret.encode() for secret in secrets), streamed=streamed
    )


def text_of(answer):
    return answer.whole["choices"][0]["message"]["content"]


def test_what_came_before_an_oddity_is_handed_on_and_the_rest_follows_at_the_end():
    sound = sse(chunk({"role": "assistant", "content": "Let me "}), chunk({"content": "look."}), end="")
    odd = [piece(None, "bash", '{"a"', id=None), piece(None, arguments=":1}")]
    reader = reader_of()
    assert reader.feed(sound) == sound
    assert reader.feed(sse(*odd, chunk({"content": " So."}), chunk(finish="tool_calls"))) == b""
    content = reader.end().content
    assert content.startswith(sound)
    theirs = ask(CHAT, streamed(content)).choices[0].message
    assert (theirs.content, theirs.tool_calls[0].function.arguments) == ("Let me look. So.", '{"a":1}')


def test_the_end_is_kept_back_until_the_answer_is_recorded():
    events = [chunk({"content": "x"}), chunk(finish="stop")]
    reader = reader_of()
    assert reader.feed(sse(*events)) == sse(events[0], end="")
    assert (reader.over, reader.stopped, reader.end().content) == (True, True, sse(*events))


# Keys


@pytest.mark.parametrize("cut", [0, 5, 12, 20, len(KEY)])
@pytest.mark.parametrize("field", ["content", "reasoning"])
def test_a_key_is_masked_wherever_it_is_cut(field, cut):
    events = [
        chunk({"content": "It is "}),
        chunk({field: f"a {KEY[:cut]}"}),
        chunk({field: f"{KEY[cut:]} b"}),
    ]
    reader = reader_of(secrets=[KEY])
    news = reader.feed(sse(*events, chunk(finish="stop")))
    content = reader.end().content
    said = "".join(
        json.loads(line[6:])["choices"][0]["delta"].get(field) or ""
        for line in content.decode().splitlines()
        if line.startswith("data: {")
    )
    assert content.startswith(news) and said.endswith("*** b")
    assert KEY[:12] not in said


def test_a_key_in_a_whole_answer_is_masked():
    message = {"role": "assistant", "content": KEY}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    reader = reader_of(secrets=[KEY], streamed=False, stream=False)
    reader.feed(json.dumps(whole).encode())
    answer = reader.end()
    assert (text_of(answer), KEY.encode() in answer.content) == ("***", False)


# Events in bytes


@pytest.mark.parametrize(
    ("block", "event"),
    [
        (f"event: x\ndata: {A}\n\n", ("x", A)),
        (f": still here\nid: 3\r\ndata:{A}\r\n\r\n", ("", A)),
        (f"\ufeffdata: {A}\n\n", ("", A)),
        ('data: {"a":\ndata: 1}\n\n', ("", '{"a":\n 1}')),
        ("data: [DONE] \n\n", ("", "[DONE]")),
        *(
            (noise, ("", ""))
            for noise in (": ping\n\n", "retry: 3\n\n", "data:\n\n", "data: PING\n\n", "\n\n")
        ),
    ],
)
def test_the_event_of_a_block_is_read(block, event):
    name, data = read_block(block.encode())
    assert (name, data.decode()) == event


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_change_nothing(line_end):
    content = sse(chunk({"content": "x"}), chunk(finish="stop")).replace(b"\n", line_end.encode())
    answer, _ = passed(CHAT, content, cuts=range(0, len(content), 7))
    assert (text_of(answer), answer.content.rstrip()) == ("x", content.rstrip())


@pytest.mark.parametrize("content", [b"data: {\n\n", b"data: 7\n\n", b"data: " + b"[" * 5_000 + b"\n\n"])
def test_what_is_no_json_object_is_no_answer(content):
    with pytest.raises(UnusableReply):
        reader_of().feed(content)


def test_what_is_nested_too_deep_is_no_answer():
    deep = b'{"a":' * 200 + b"1" + b"}" * 200
    with pytest.raises(UnusableReply, match="nested"):
        reader_of().feed(b"data: " + deep + b"\n\n")


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_without_end_is_bounded(monkeypatch, streamed):
    monkeypatch.setattr(receiving, "MAX_ANSWER_BYTES", 100)
    reader = reader_of(streamed=streamed)
    reader.feed(b": " + b"x" * 60)
    with pytest.raises(UnusableReply):
        reader.feed(b"x" * 60)


def test_calls_that_are_done_are_an_answer_even_if_the_connection_breaks():
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "bash", "arguments": "{}"}
    begun = {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}
    added = {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
    reader = reader_of(RESPONSES)
    reader.feed(sse(begun, added, end=""))
    assert not reader.stopped
    reader.feed(sse({"type": "response.output_item.done", "output_index": 0, "item": item}, end=""))
    assert reader.stopped
    answer = reader.end()
    assert (answer.whole["status"], answer.whole["output"]) == ("completed", [item])
    assert answer.content.count(b"event: response.completed") == 1

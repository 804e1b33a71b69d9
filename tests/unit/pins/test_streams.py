"""Broken streams are asked for again and never taken for answers; odd ones are mended; all others pass as they came."""

import json

import httpx2
import pytest

from tests.support.pins.agents import CALLS, PATHS, SAYS, agent_of, answering, question, records, run, stage
from tests.support.pins.door import read_spend
from tests.support.pins.provider import in_turn, play_either, play_stream

pytestmark = pytest.mark.starts_processes

CALLED = [(call.name, json.loads(call.arguments)) for call in CALLS]
BILLED = 50 + 20
"""Tokens of each answer."""
ENDS = {"chat": b"[DONE]", "responses": b"response.completed", "messages": b"message_stop"}
MARKS = {"the text": b"then I think", "the arguments": b"23456"}
CUTS = ["the first event", *MARKS, "all but the last event"]
"""After what a stream is cut."""


def cut_at(events, place):
    """Return after how many events a stream is cut."""
    if place in MARKS:
        return next(number for number, event in enumerate(events, 1) if MARKS[place] in event)
    return 1 if place == "the first event" else len(events) - 1


async def read_until_whole(agent, protocol, body):
    """Return the answer and the beginnings of those that broke off."""
    broken = []
    while len(broken) < 3:
        came = b""
        try:
            async with agent.web.stream("POST", PATHS[protocol], json=body) as answer:
                async for piece in answer.aiter_raw():
                    came += piece
            break
        except httpx2.RemoteProtocolError:
            broken.append(came)
    return came, broken


@pytest.mark.parametrize("protocol", PATHS)
def test_a_cut_stream_is_asked_for_again_and_only_a_whole_one_ends(tmp_path, protocol):
    async def scenario():
        async with stage(tmp_path / "run", protocol, answering(protocol)) as (provider, door):
            for action, place in enumerate(CUTS, 1):

                async def cut(asked, place=place):
                    events = records(protocol, asked.body)
                    await play_stream(asked, events, cut_at(events, place))

                provider.play, before = in_turn(cut, answering(protocol)), len(provider.asked)
                body = question(protocol, place, stream=True)
                async with agent_of(door, action) as agent:
                    came, broken = await read_until_whole(agent, protocol, body)
                    requests = len(provider.asked) - before
                    read = await agent.read(protocol, body)
                assert read.text == SAYS
                assert [(name, arguments) for _, name, arguments in read.calls] == CALLED
                assert ENDS[protocol] in came
                assert not any(ENDS[protocol] in beginning for beginning in broken), place
                # Where only the last event is missing, an earlier one may have told that the model had stopped.
                least = 1 if place == CUTS[-1] else 2
                most = 1 if place == CUTS[-1] else 2
                assert least <= requests <= most, place
                assert len(broken) <= requests - 1, place
                assert not broken or place != CUTS[0]

    run(scenario())
    spend = read_spend(tmp_path / "run")
    assert spend.calls == 2 * len(CUTS)
    assert spend.tokens > 2 * len(CUTS) * BILLED


@pytest.mark.parametrize("protocol", PATHS)
def test_a_stream_that_always_ends_within_a_call_is_no_answer(tmp_path, protocol):
    async def cut(asked):
        content = records(protocol, {**asked.body, "stream": True})
        await play_stream(asked, content[: cut_at(content, "the arguments")])

    async def scenario():
        async with stage(tmp_path / "run", protocol, cut) as (provider, door), agent_of(door) as agent:
            return await agent.post(protocol, question(protocol)), len(provider.asked)

    answer, requests = run(scenario())
    assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "false")
    assert requests >= 3


def edit(change):
    """Return a change of a stream by ``change``, which edits the JSON of one event or returns False to drop it."""

    def apply(events):
        changed = []
        for event in events:
            head, _, data = event.decode().partition("data: ")
            body = json.loads(data) if data.startswith("{") else data
            if not isinstance(body, dict):
                changed.append(event)
            elif change(body) is not False:
                changed.append(f"{head}data: {json.dumps(body)}\n\n".encode())
        return changed

    return apply


def without(key):
    """Return an edit that removes a key of each call of a chat."""

    def change(event):
        for choice in event.get("choices", ()):
            for call in choice["delta"].get("tool_calls", ()):
                call.pop(key, None)

    return edit(change)


def without_finish(event):
    for choice in event.get("choices", ()):
        choice["finish_reason"] = None


def without_usage(event):
    for place in (event, event.get("response", {}), event.get("message", {})):
        place.pop("usage", None)
    return event.get("choices") != []


def without_call_id(event):
    for item in (event.get("item", {}), *event.get("response", {}).get("output", ())):
        item.pop("call_id", None)


def drop(kind):
    return edit(lambda event: event.get("type") != kind)


ODD = {
    "chat": {
        "no index": without("index"),
        "no id": without("id"),
        "no finish reason": edit(without_finish),
        "no [DONE]": lambda events: events[:-1],
        "no usage": edit(without_usage),
    },
    "responses": {
        "no call id": edit(without_call_id),
        "no end": drop("response.completed"),
        "no usage": edit(without_usage),
    },
    "messages": {"no end": drop("message_stop"), "no usage": edit(without_usage)},
}


@pytest.mark.parametrize("protocol", PATHS)
def test_odd_streams_are_read_by_strict_clients_and_counted(tmp_path, protocol):
    async def scenario():
        async with stage(tmp_path / "run", protocol, answering(protocol)) as (provider, door):
            for action, (name, change) in enumerate(ODD[protocol].items(), 1):

                async def play(asked, change=change):
                    await play_stream(asked, change(records(protocol, asked.body)))

                provider.play = play
                async with agent_of(door, action) as agent:
                    answer = await agent.read(protocol, question(protocol, name, stream=True))
                calls = [(called, arguments) for _, called, arguments in answer.calls]
                assert (answer.text, calls, answer.stop) == (SAYS, CALLED, "calls"), name
                assert len({call_id for call_id, _, _ in answer.calls if call_id}) == len(CALLS), name
                assert min(answer.tokens) > 0, name
            assert len(provider.asked) == len(ODD[protocol])

    run(scenario())
    assert read_spend(tmp_path / "run").tokens > BILLED * (len(ODD[protocol]) - 1)


@pytest.mark.parametrize("protocol", PATHS)
def test_what_a_client_can_read_passes_byte_for_byte(tmp_path, protocol):
    """Unknown fields and unknown events included, streamed and whole."""
    new = {"x_new": {"deep": [1, 2.50]}}
    kind = {"object": "chat.completion.chunk", "choices": []} if protocol == "chat" else {"type": "x.new"}
    sent = []

    async def play(asked):
        content = records(protocol, asked.body)
        if asked.body.get("stream"):
            content = edit(lambda event: event.update(new))(content)
            name = "" if protocol == "chat" else "event: x.new\n"
            content.insert(2, f"{name}data: {json.dumps({**kind, **new})}\n\n".encode())
        else:
            content = [json.dumps({**json.loads(content[0]), **new}, indent=1).encode()]
        sent.append(b"".join(content))
        await play_either(asked, content)

    async def scenario():
        async with stage(tmp_path / "run", protocol, play) as (_, door), agent_of(door) as agent:
            bodies = [question(protocol, stream=stream) for stream in (True, False)]
            return [(await agent.post(protocol, body)).content for body in bodies]

    assert run(scenario()) == sent

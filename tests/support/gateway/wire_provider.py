"""A provider for the gateway's tests that answers in a protocol of its own, as a script says."""

import asyncio
import json

from dgm.domain import Usage
from dgm.messages import WireProtocol, WireReply
from dgm.protocols import Checked

USAGE = Usage(1, 10, 5)


def completion(text="hello", **more):
    """A whole chat completion, with a field that dgm knows nothing of."""
    message = {"role": "assistant", "content": text, "x_unknown": [1, {"a": None}]}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "own",
        "choices": [choice],
        "usage": usage,
        **more,
    }


def chunk(delta, finish=None):
    """One record of a streamed chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: "
        + json.dumps({"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}).encode()
        + b"\n\n"
    )


STREAM = (
    chunk({"role": "assistant", "content": "hel"}),
    chunk({"content": "lo"}),
    chunk({}, "stop"),
    b"data: [DONE]\n\n",
)


def whole(text="hello", **more):
    """An answer in one piece."""

    async def answer(_request, _delivery):
        return WireReply(WireProtocol.CHAT, json.dumps(completion(text, **more)).encode(), False, USAGE)

    return answer


def streamed(gate=None, records=STREAM, passed=2):
    """An answer whose first records are handed on; the rest waits for ``gate``."""

    async def answer(_request, delivery):
        for record in records[:passed]:
            delivery.pass_on(record)
        if gate is not None:
            await gate.wait()
        return WireReply(WireProtocol.CHAT, b"".join(records), True, USAGE)

    return answer


def failing(error):
    """No answer."""

    async def answer(_request, _delivery):
        raise error

    return answer


class Provider:
    """``dgm.protocols.WireModel``: gives its answers in order, the last one again for ever."""

    name = "openai-compatible/own"
    own_name = "own"
    takes_tools = True
    takes_form = False

    def __init__(self, *answers, protocol=WireProtocol.CHAT, also=()):
        self.protocol = protocol
        self.protocols = (protocol, *also)
        self.answers = answers or (whole(),)
        self.asked = []

    def adopt(self, listener, abilities):
        pass

    async def send(self, request, delivery):
        self.asked.append(request)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        await delivery.begin()
        delivery.sending()
        return await answer(request, delivery)

    async def check(self):
        return Checked(self.name, {}, (), Usage(1, 1, 1))

    async def close(self):
        pass


async def until(told, seconds=20.0):
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not told():
            await asyncio.sleep(0.005)

"""Open calls are counted: those at their model, and those that wait for a turn, for money or for the next try."""

import asyncio

import pytest

from dgm.archive.live import LIVE_FILE, LiveCalls, read_live
from dgm.messages import Message, Request, Role
from dgm.sandboxes.choose import publish_live
from tests.support.gateway.bench import ACTION, Slow, gateway
from tests.support.gateway.wire_provider import Provider, until, whole

pytestmark = pytest.mark.slow

QUESTION = Request((Message(Role.USER, "Well?"),), max_output_tokens=1_000)


def waits(gate):
    """A model that waits for its turn, answers in a while, and between is refused for a moment."""

    async def answer(request, delivery):
        with delivery.waiting():
            await gate["turn"].wait()
        await delivery.begin()
        delivery.sending()
        await gate["refusal"].wait()
        with delivery.waiting():
            await gate["again"].wait()
        await delivery.begin()
        delivery.sending()
        await gate["answer"].wait()
        return await whole()(request, delivery)

    return answer


class Turned(Provider):
    """Calls nothing before the answer does."""

    async def send(self, request, delivery):
        self.asked.append(request)
        return await self.answers[0](request, delivery)


async def test_a_call_waits_until_it_is_sent_and_again_after_a_try_that_failed(tmp_path):
    gate = {name: asyncio.Event() for name in ("turn", "refusal", "again", "answer")}
    async with gateway(tmp_path / "g", Turned(waits(gate))) as opened:
        count = opened.caller.count_live
        with opened.lend(ACTION, "solve") as lease:
            task = asyncio.create_task(opened.ask(lease, QUESTION))
            seen = []
            for event in gate.values():
                await until(lambda: lease.wire_model.asked)
                await asyncio.sleep(0.02)
                seen.append(count())
                event.set()
            await task
        assert [(one.under_way, one.waiting) for one in seen] == [(0, 1), (1, 0), (0, 1), (1, 0)]
        assert seen[0].oldest_wait < seen[2].oldest_wait
        assert seen[1].oldest_wait is None
        assert count() == LiveCalls(0, 0, None)


async def test_a_failed_call_is_open_no_more(tmp_path):
    async def failing(_request, _delivery):
        raise OSError("gone")

    async with gateway(tmp_path / "g", Provider(failing)) as opened:
        with opened.lend(ACTION, "solve") as lease, pytest.raises(Exception, match="gone"):
            await opened.ask(lease, QUESTION)
        await asyncio.sleep(0)
        assert opened.caller.count_live() == LiveCalls(0, 0, None)


async def test_the_file_follows_the_calls_and_goes_with_the_session(tmp_path):
    model = Slow()
    async with (
        gateway(tmp_path / "g", model) as opened,
        publish_live(tmp_path, opened.caller.count_live, None, 0.01),
    ):
        with opened.lend(ACTION, "solve") as lease:
            task = asyncio.create_task(opened.ask(lease, QUESTION))
            await until(lambda: read_live(tmp_path).calls == LiveCalls(1, 0, None))
            model.go.set()
            await task
        await until(lambda: read_live(tmp_path).calls == LiveCalls(0, 0, None))
    assert not (tmp_path / LIVE_FILE).exists()

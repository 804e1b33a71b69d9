import asyncio
import json
from contextlib import aclosing
from types import SimpleNamespace

import pytest

from dgm.archive.events import RunStopped
from dgm.errors import Infrastructure
from dgm.views.run import RunReader
from dgm.web.app import stream_news
from dgm.web.shared import FRESH_S, RunSource, SharedRun
from tests.support.runs.growing import Growing


@pytest.fixture
def growing(tmp_path):
    steps = Growing(tmp_path / "run")
    yield steps
    steps.run.close()


def counting(results):
    def compute():
        results.append(len(results))
        return results[-1]

    return compute


@pytest.fixture
def clock():
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def source(growing, clock):
    source = RunSource(RunReader(growing.run), clock=lambda: clock.now)
    source.follow()
    return source


def test_a_result_is_computed_again_only_after_new_events(growing, source, clock):
    compute = counting([])
    assert source.memo("x", compute) == 0
    clock.now += 1
    assert source.memo("x", compute) == 0
    growing.born(0)
    source.follow()
    assert source.memo("x", compute) == 1
    assert source.memo("y", compute) == 2


def test_ages_of_a_living_run_are_computed_again(source, clock):
    compute = counting([])
    source.memo("x", compute)
    clock.now += FRESH_S + 1
    assert source.memo("x", compute) == 1


def test_an_ended_run_is_computed_once(growing, source, clock):
    growing.run.append(RunStopped("goal reached"))
    source.follow()
    compute = counting([])
    source.memo("x", compute)
    clock.now += 1_000_000
    assert source.memo("x", compute) == 0


def test_an_end_is_shown_at_once(growing, source, clock):
    def compute():
        clock.now += 60.0
        return source.follow() or source.news().state

    source.memo("x", compute)
    growing.run.append(RunStopped("goal reached"))
    source.follow()
    assert source.peek("x", "goal reached") is None
    assert source.memo("x", compute) == "goal reached"


def test_what_takes_long_is_computed_rarely(growing, source, clock):
    results = []

    def compute():
        clock.now += 3.0
        results.append(growing.run.tree.seq)

    for _ in range(100):
        growing.born(0)
        source.follow()
        source.memo("x", compute)
        clock.now += 1.0
    assert len(results) == pytest.approx(100 / 33, abs=1)


def test_a_result_is_as_old_as_the_oldest_in_it(growing, source, clock):
    def compute_long():
        clock.now += 10.0

    source.memo("long", compute_long)
    before = growing.run.tree.seq
    growing.born(0)
    source.follow()
    source.memo("page", lambda: source.memo("long", compute_long))
    assert source.seq == before
    clock.now += 200.0
    source.memo("page", lambda: source.memo("long", compute_long))
    assert source.seq == growing.run.tree.seq


def test_results_do_not_fill_the_memory(source):
    for number in range(2_000):
        source.memo(f"{number}", lambda: b"x" * 1_000_000)
    assert sum(result.size for result in source._results.values()) <= 64_000_000


def test_viewers_share_one_reader_and_see_the_newest_news(growing):
    async def watch():
        shared = SharedRun(growing.run.folder)
        try:
            first = await shared.next_news(None)
            waiting = [asyncio.create_task(shared.next_news(first)) for _ in range(50)]
            await asyncio.sleep(0.1)
            growing.born(0)
            growing.born(0)
            seen = await asyncio.wait_for(asyncio.gather(*waiting), 20)
        finally:
            shared.close()
        return first, seen

    first, seen = asyncio.run(watch())
    assert first.agents == 1
    assert {news.agents for news in seen} == {3}


@pytest.mark.slow
def test_fifty_events_a_second_are_at_most_four_news(growing):
    async def watch():
        shared, messages = SharedRun(growing.run.folder), []
        loop = asyncio.get_running_loop()
        try:
            async with aclosing(stream_news(shared)) as stream:
                messages.append(await anext(stream))
                ends = loop.time() + 2.0

                async def grow():
                    while loop.time() < ends:
                        growing.start(0)
                        await asyncio.sleep(0.02)
                    growing.run.append(RunStopped("goal reached"))

                growth = asyncio.create_task(grow())
                while '"state": "goal reached"' not in messages[-1]:
                    messages.append(await asyncio.wait_for(anext(stream), 20))
                took = loop.time() - (ends - 2.0)
                await growth
        finally:
            shared.close()
        return messages, took

    messages, took = asyncio.run(watch())
    assert len(messages) <= 4 * took + 2
    news = [json.loads(message.removeprefix("data: ")) for message in messages if message.startswith("data")]
    assert news[-1]["seq"] == growing.run.tree.seq
    assert [each["seq"] for each in news] == sorted(each["seq"] for each in news)


@pytest.mark.slow
def test_the_death_of_a_search_and_its_resumption_are_news(growing, tmp_path):
    from dgm.archive.run import Run

    async def watch():
        shared = SharedRun(growing.run.folder)
        try:
            news = [await shared.next_news(None)]
            growing.run.close()
            news.append(await asyncio.wait_for(shared.next_news(news[-1]), 20))
            with Run.open(growing.run.folder, write=True):
                while not news[-1].living:
                    news.append(await asyncio.wait_for(shared.next_news(news[-1]), 20))
        finally:
            shared.close()
        return news

    news = asyncio.run(watch())
    states = list(dict.fromkeys((each.state, each.living) for each in news))
    assert states == [("running", True), ("interrupted", False)]
    assert news[-1].state == "running"


def test_a_removed_run_ends_the_news(growing, tmp_path):
    async def watch():
        shared, messages = SharedRun(growing.run.folder), []
        try:
            async for message in stream_news(shared):
                messages.append(message)
                growing.run.folder.rename(tmp_path / "gone")
                if len(messages) > 3:
                    break
        except FileNotFoundError:
            pass
        finally:
            shared.close()
        return messages

    messages = asyncio.run(watch())
    assert messages[-1].startswith("event: gone")


def test_a_closed_run_answers_nobody(growing):
    async def ask():
        shared = SharedRun(growing.run.folder)
        shared.close()
        await asyncio.wait_for(shared.compute("x", lambda source: source.run.name), 20)

    with pytest.raises(Infrastructure):
        asyncio.run(ask())


def test_a_removed_run_cannot_be_computed(growing, tmp_path):
    async def ask():
        shared = SharedRun(growing.run.folder)
        growing.run.folder.rename(tmp_path / "gone")
        try:
            await shared.compute("x", lambda source: source.run.name)
        finally:
            shared.close()

    with pytest.raises(Infrastructure):
        asyncio.run(ask())

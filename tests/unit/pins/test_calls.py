"""Each call is paid once, whoever hangs up or asks again; money is bounded; a record answers without its provider."""

import asyncio
import json
import re
from contextlib import AsyncExitStack

import pytest

from tests.support.pins.agents import PATHS, agent_of, answering, question, run, stage
from tests.support.pins.door import KEYS, make_settings, open_door, open_replay, read_spend
from tests.support.pins.provider import Provider, in_turn

pytestmark = pytest.mark.starts_processes

TIME = re.compile(rb'"created": ?\d+')
DEAR = {"input": 100.0, "output": 1000.0}


class Echo:
    """Answers with the question and the number of the request, when it is let."""

    def __init__(self, output=10):
        self.usage = {"prompt_tokens": 40, "completion_tokens": output, "total_tokens": 40 + output}
        self.let = asyncio.Event()
        self.let.set()
        self.served = 0

    async def __call__(self, asked):
        self.served += 1
        text = f"{asked.body['messages'][-1]['content'][:40]} #{self.served}"
        await self.let.wait()
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        await asked.send(json.dumps({**whole, "choices": [choice], "usage": self.usage}).encode())


async def ask(agent, text="hi", **more):
    """Return status and text, or code, of the answer."""
    answer = await agent.post("chat", question("chat", text, **more))
    body = answer.json()
    return answer.status_code, body.get("error", {}).get("code") or body["choices"][0]["message"]["content"]


def test_agents_at_once_get_their_own_answers_and_equal_questions_one_each(tmp_path):
    async def scenario():
        async with stage(tmp_path / "run", "chat", Echo()) as (provider, door):

            async def work(action):
                async with agent_of(door, action) as agent:
                    texts = [f"agent {action} asks {number // 2}" for number in range(6)]
                    return await asyncio.gather(*(ask(agent, text) for text in texts))

            answers = await asyncio.gather(*map(work, range(1, 7)))
            async with agent_of(door) as agent:
                repeated = [await ask(agent, "agent 1 asks 0") for _ in range(2)]
            return answers, repeated, provider.play.served

    answers, repeated, served = run(scenario())
    assert served == 36
    for action, texts in enumerate(answers, 1):
        asked = [text.partition(" #")[0] for _, text in texts]
        assert asked == [f"agent {action} asks {number // 2}" for number in range(6)]
    assert len({text for texts in answers for _, text in texts}) == 36
    assert sorted(repeated) == sorted(answers[0][:2])
    spend = read_spend(tmp_path / "run")
    assert (spend.calls, spend.tokens) == (36, 36 * 50)
    assert spend.usd == pytest.approx(36 * (40 * 1.0 + 10 * 10.0) / 1e6)


@pytest.mark.parametrize("new_job", [False, True], ids=["same job", "job performed again"])
@pytest.mark.parametrize("late", [False, True], ids=["under way", "answered meanwhile"])
def test_an_agent_that_hangs_up_and_asks_again_pays_once(tmp_path, new_job, late):
    async def scenario():
        echo = Echo()
        echo.let.clear()
        async with stage(tmp_path / "run", "chat", echo) as (provider, door), AsyncExitStack() as first_job:
            agent = await first_job.enter_async_context(agent_of(door))
            first = asyncio.create_task(ask(agent))
            await provider.first.wait()
            first.cancel()
            if new_job:
                await first_job.aclose()
                agent = await first_job.enter_async_context(agent_of(door))
            if late:
                echo.let.set()
            await asyncio.sleep(0.2)
            second = asyncio.create_task(ask(agent))
            await asyncio.sleep(0.1)
            echo.let.set()
            return await second, echo.served

    assert run(scenario()) == ((200, "hi #1"), 1)
    assert read_spend(tmp_path / "run").tokens == 50


def test_a_budget_that_runs_out_between_two_calls_stops_and_more_money_goes_on(tmp_path):
    """The second question alone would fit; after the first, its input costs more than is left."""
    limits = {"hi": 1000, (long := "x" * 9_000): 100}

    async def scenario():
        async with Provider(Echo(output=1000)) as provider:

            async def session(usd, name, *texts):
                settings = make_settings("chat", provider.url, usd=DEAR, budget={"usd": usd})
                async with open_door(tmp_path / name, settings) as door, agent_of(door) as agent:
                    answers = [await ask(agent, text, max_completion_tokens=limits[text]) for text in texts]
                    spent = door.budget_spent
                return answers, spent, read_spend(tmp_path / name).usd

            return [
                await session(1.2, "alone", long),
                await session(1.2, "run", "hi", long),
                await session(9.0, "run", "hi", long),
            ], provider.play.served

    (alone, short, more), served = run(scenario())
    assert alone[:2] == ([(200, f"{long[:40]} #1")], False)
    assert short[:2] == ([(200, "hi #2"), (503, "model_unavailable")], True)
    assert short[2] == pytest.approx(1.004)
    assert more[:2] == ([(200, "hi #2"), (200, f"{long[:40]} #3")], False)
    assert served == 3


def test_a_job_has_limits_of_its_own(tmp_path):
    async def scenario():
        opened = stage(tmp_path / "run", "chat", Echo(), limits={"calls": 2})
        async with opened as (provider, door), agent_of(door) as agent:
            return [await ask(agent, text) for text in ("a", "b", "c")], provider.play.served

    assert run(scenario()) == ([(200, "a #1"), (200, "b #2"), (403, "action_limit_exceeded")], 2)


@pytest.mark.parametrize(
    "message",
    [
        "messages.0: all messages must have non-empty content",
        "prompt is too long: 9 tokens > 8",
        "messages: no",
    ],
)
def test_a_refusal_of_one_request_leaves_the_model_to_others(tmp_path, message):
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    play = in_turn(lambda asked: asked.send(json.dumps(error).encode(), status=400), answering("messages"))

    async def scenario():
        async with stage(tmp_path / "run", "messages", play) as (provider, door), agent_of(door) as agent:
            answers = [await agent.post("messages", question("messages", text)) for text in ("one", "two")]
            return [answer.status_code for answer in answers], len(provider.asked)

    assert run(scenario()) == ([400, 200], 2)


@pytest.mark.parametrize(("agent", "provider"), [*zip(PATHS, PATHS, strict=True), ("chat", "messages")])
def test_a_record_gives_the_same_bytes_without_provider_and_key(tmp_path, monkeypatch, agent, provider):
    """To the run that goes on, and to a replay; a question that is not in the record gets no answer."""
    folder = tmp_path / "run"
    bodies = [
        question(agent, "one", stream=True),
        question(agent, "two"),
        question(agent, "two", stream=True),
    ]

    async def talk(door, bodies):
        async with agent_of(door) as asking:
            answers = [await asking.post(agent, body) for body in bodies]
        # A translated answer has the time at which the agent got it.
        return [(answer.status_code, TIME.sub(b"", answer.content)) for answer in answers]

    async def scenario():
        async with Provider(answering(provider)) as playing:
            settings = make_settings(provider, playing.url)
            for _ in range(2):
                async with open_door(folder, settings) as door:
                    yield await talk(door, bodies)
            yield len(playing.asked)
        for name in KEYS:
            monkeypatch.delenv(name)
        async with open_replay(folder, settings) as door:
            yield await talk(door, bodies)
            yield await talk(door, [question(agent, "three")])

    async def collect():
        return [item async for item in scenario()]

    first, second, count, replayed, unknown = run(collect())
    assert [status for status, _ in first] == [200] * 3
    assert first == second == replayed
    assert count == 3
    assert unknown[0][0] == 503

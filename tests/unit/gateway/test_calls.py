"""What an agent's calls cost, and what is never asked twice: over real HTTP on a real socket."""

import asyncio
import logging

import pytest

from dgm.domain import Usage
from dgm.errors import Infrastructure
from dgm.gateway.lease import CallLimits
from dgm.messages import CallKey, Reply, Role
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, Slow, ask, client, gateway, talking

pytestmark = pytest.mark.slow


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 300))


async def test_reply_reaches_the_agent_and_the_account(tmp_path):
    model = Script()
    async with talking(gateway(tmp_path / "g", model)) as (_, lease, http):
        status, body = await ask(http)
    assert status == 200
    assert body["choices"][0]["message"]["content"] == "hello"
    assert body["usage"]["total_tokens"] == 15
    assert (lease.calls, lease.usage, lease.refusals) == (1, Usage(1, 10, 5, 60e-6), 0)
    (thread,) = lease.threads
    said = [(turn.message.role, turn.message.text) for turn in thread.turns]
    assert said == [(Role.USER, "hi"), (Role.ASSISTANT, "hello")]
    assert model.asked[0].model == "scripted"


def texts(answers):
    return [body["choices"][0]["message"]["content"] for _, body in answers]


async def test_repeated_action_that_asks_something_else_pays_for_it(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "dgm.gateway")  # a replay in this process may have raised it
    journal, model = MemoryJournal(), Script(Reply("new"))
    journal.already(Reply("paid"), "took 0.3 s")
    for text, said in (("took 0.5 s", "paid"), ("took a turn", "new"), ("took a turn", "new")):
        async with talking(gateway(tmp_path / "g", model, journal)) as (_, _, http):
            answer = await ask(http, messages=[{"role": "user", "content": text}])
        assert texts([answer]) == [said]
        assert ("is not the recorded one" in caplog.text) == (text == "took a turn")
    assert list(journal.paid) == [CallKey(ACTION, 1), CallKey(ACTION, 2)]
    assert len(model.asked) == 1


async def test_dry_run_is_neither_journaled_nor_served_from_the_journal(tmp_path):
    journal = MemoryJournal()
    journal.already(Reply("paid"))
    async with gateway(tmp_path / "g", journal=journal) as opened:
        with opened.lend(ACTION, "dry-run") as lease:
            async with client(opened, lease.token) as http:
                _, body = await ask(http)
    assert body["choices"][0]["message"]["content"] == "hello"
    assert list(journal.paid) == [CallKey(ACTION, 1)]


async def test_tokens_beyond_the_limit_are_refused(tmp_path):
    async with talking(gateway(tmp_path / "g", limits=CallLimits(tokens=20))) as (_, _, http):
        assert [(await ask(http))[0] for _ in range(3)] == [200, 200, 403]


async def test_further_calls_wait_their_turn(tmp_path):
    model = Slow()
    async with talking(gateway(tmp_path / "g", model, limits=CallLimits(concurrent=2))) as (
        _opened,
        lease,
        http,
    ):
        calls = [asyncio.create_task(ask(http)) for _ in range(6)]
        while lease.open < 6 or model.waiting < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # a third, if the limit did not hold
        model.go.set()
        assert [status for status, _ in await asyncio.gather(*calls)] == [200] * 6
    assert model.most == 2


async def test_reply_is_cut_down_to_the_lease_and_not_below_the_wish(tmp_path):
    model = Script()
    async with talking(gateway(tmp_path / "g", model, limits=CallLimits(output_tokens=100))) as (
        _opened,
        _lease,
        http,
    ):
        await ask(http, max_tokens=1000)
        await ask(http, max_completion_tokens=7)
    assert [request.max_output_tokens for request in model.asked] == [100, 7]


async def test_token_of_an_ended_lease_is_refused(tmp_path):
    async with gateway(tmp_path / "g") as opened:
        with opened.lend(ACTION, "solve") as lease:
            pass
        async with client(opened, lease.token) as http:
            status, body = await ask(http)
            models = await http.get("/models")
    assert (status, body["error"]["code"], models.status_code) == (401, "invalid_api_key", 401)


async def test_calls_that_may_be_billed_outlive_their_lease_and_are_recorded(tmp_path):
    model, journal = Slow(), MemoryJournal()
    limits = CallLimits(concurrent=1)
    async with gateway(tmp_path / "g", model, journal, limits=limits) as opened:
        with opened.lend(ACTION, "solve") as lease:
            http = client(opened, lease.token)
            calls = [asyncio.create_task(ask(http)) for _ in range(3)]
            while not model.waiting or lease.open < 3:
                await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_later(0.1, model.go.set)
        statuses = sorted([(await call)[0] for call in calls])
        await http.aclose()
    # One was at the provider, two had not begun.
    assert (statuses, model.cancelled, len(journal.paid)) == ([200, 401, 401], 0, 1)


async def test_model_that_cannot_be_reached_fails_the_lease(tmp_path):
    model = Script(Infrastructure("no route"))
    async with talking(gateway(tmp_path / "g", model)) as (_, lease, http):
        statuses = [(await ask(http))[0] for _ in range(3)]
    assert statuses == [503, 503, 503]
    assert str(lease.failure) == "action 7, call 1: no route"
    # The second is the neutral question.
    assert len(model.asked) == 2


@pytest.mark.parametrize("where", ["model", "journal"])
async def test_fault_of_ours_is_an_infrastructure_failure(tmp_path, where):
    class FullDisk(MemoryJournal):
        async def record(self, call):
            raise OSError("no space left on device")

    model = Script(KeyError("bug")) if where == "model" else Script()
    journal = FullDisk() if where == "journal" else MemoryJournal()
    async with talking(gateway(tmp_path / "g", model, journal)) as (_, lease, http):
        status, body = await ask(http)
    assert status == 503
    assert "Traceback" not in str(body)
    assert isinstance(lease.failure, Infrastructure)


async def test_idle_connections_of_one_agent_do_not_shut_out_another(tmp_path):
    async with gateway(tmp_path / "g") as opened:
        path = str(opened.folder / opened.socket_name)
        idle = [(await asyncio.open_unix_connection(path))[1] for _ in range(300)]
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                assert (await ask(http))[0] == 200
        ended = 0
        for writer in idle:
            writer.write(b"GET")
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                ended += 1
        assert ended


async def test_too_many_requests_at_once_are_refused(tmp_path):
    model = Slow()
    async with talking(gateway(tmp_path / "g", model, limits=CallLimits(concurrent=1, waiting=3))) as (
        _opened,
        lease,
        http,
    ):
        calls = [asyncio.create_task(ask(http)) for _ in range(5)]
        while lease.refusals < 2:
            await asyncio.sleep(0.01)
        model.go.set()
        statuses = sorted([status for status, _ in await asyncio.gather(*calls)])
    assert statuses == [200, 200, 200, 429, 429]

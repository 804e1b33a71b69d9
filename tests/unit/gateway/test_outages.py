"""An agent that gave up, or ran out of time, is told from one whose model did not answer in time."""

import asyncio

import pytest

from dgm.errors import Infrastructure
from tests.support.gateway.bench import ACTION, Slow, ask, client, gateway

pytestmark = pytest.mark.slow


async def abandoned(tmp_path, model, limit_s, meanwhile=lambda: None):
    """The failure of a lease whose agent's time was over while it asked."""
    async with gateway(tmp_path / "g", model) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                asked = asyncio.create_task(ask(http))
                while not model.waiting:
                    await asyncio.sleep(0.005)
                asked.cancel()
                asyncio.get_running_loop().call_later(0.02, meanwhile)
                lacking = await lease.wait_for_calls(limit_s)
                failure = lease.failure
            model.go.set()
    return failure or lacking


async def test_a_call_that_fails_after_its_agent_ended_is_the_models_failure(tmp_path):
    model = Slow()
    model.answers = (Infrastructure("8 tries in 90 s, the last: 503"),)
    failure = await abandoned(tmp_path, model, 30.0, model.go.set)
    assert "the last: 503" in str(failure)


async def test_a_call_that_is_answered_after_its_agent_ended_leaves_it_to_blame(tmp_path):
    model = Slow()
    assert await abandoned(tmp_path, model, 30.0, model.go.set) == ""


async def test_a_model_that_never_answers_has_failed(tmp_path):
    failure = await abandoned(tmp_path, Slow(), 0.05)
    assert "had not answered" in str(failure)

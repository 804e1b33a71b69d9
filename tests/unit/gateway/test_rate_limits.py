"""What real providers answer at a limit, over HTTP: at the check of a model, and while an agent works.

Time passes as fast as it is slept, so that waits are exact and a day is over at once.
"""

import asyncio
import time

import pytest

from dgm.config import ProviderSettings, Settings
from dgm.domain import ActionId
from dgm.errors import ProviderRefuses, ProviderWaits
from dgm.messages import WireProtocol
from dgm.models.hosted import Access, HostedModel, Retries
from dgm.models.providers import open_connection, provider_of
from dgm.models.throttle import LONGEST_WAIT_S, Throttle
from dgm.search.start import LONGEST_WAIT_S as LONGEST_CHECK_S
from dgm.search.start import check_patiently
from tests.support.gateway.bench import MemoryJournal, client, gateway
from tests.support.hosted import KEY, PROVIDERS
from tests.support.models.rate_limits import LimitedBrain, read_limit_answers
from tests.support.wire_server import WireServer

TRIES = 4
BACKOFF_S = 1.0
TEXT = "All is well."
ANSWERS = read_limit_answers()
PASSING = [answer for answer in ANSWERS if answer.meaning == "passing"]
LIMITS = [one for n, one in enumerate(PASSING) if n % 7 == 0 or (one.wait_s or 0.0) > LONGEST_CHECK_S]
ACCOUNTS = [answer for answer in ANSWERS if answer.meaning == "account"][::7]
"""A sample over HTTP; ``tests/unit/models/test_refusals.py`` judges all of them."""


def names(answers):
    return [f"{answer.vendor}: {answer.limit}" for answer in answers]


class Clock:
    """A clock that goes forward by what is slept, beside the real one."""

    def __init__(self):
        self.slept_s = 0.0

    def now(self):
        return time.time() + self.slept_s

    def __call__(self):
        return time.monotonic() + self.slept_s

    async def sleep(self, seconds):
        self.slept_s += seconds
        await asyncio.sleep(0)


class Reached:
    """A provider at its limit, and the model behind it."""

    def __init__(self, answer, server, brain, monkeypatch):
        self.provider = PROVIDERS["anthropic" if answer.protocol is WireProtocol.MESSAGES else "openai-chat"]
        monkeypatch.setenv(self.provider.key_env, KEY)
        self.clock, self.brain, self.server, self.answer = Clock(), brain, server, answer
        brain.now = self.clock.now
        limits = ProviderSettings(
            base_url=server.url if self.provider.section == "anthropic" else server.openai_url, api="chat"
        )
        connection = open_connection(
            provider_of(Settings(providers={self.provider.section: limits}), self.provider.model),
            self.provider.own_name,
        )
        self.model = HostedModel(
            self.provider.model,
            self.provider.own_name,
            connection,
            Throttle(limits, self.clock.sleep, self.clock),
            Retries(TRIES, BACKOFF_S, self.clock.sleep, self.clock, self.clock.now),
            Access(self.provider.key_env, connection.secrets),
        )

    async def ask(self, http):
        body = {
            "model": "default",
            "max_tokens": 64,
            "messages": [{"role": "user", "content": "How are things?"}],
        }
        return await http.post(self.provider.dialect, json=body)

    def check_wait(self, slept_s):
        """Check that what was slept is what the provider asks for, and a back-off where it asks for nothing."""
        if self.answer.wait_s is None:
            assert BACKOFF_S / 2 <= slept_s <= BACKOFF_S
        else:
            assert slept_s == pytest.approx(self.answer.wait_s, abs=5.0)
            assert slept_s <= self.answer.wait_s + 0.1


def meet(answer, monkeypatch, scenario, refusing=1):
    brain = LimitedBrain(answer, TEXT, time.time, refusing)
    own_names = tuple(provider.own_name for provider in PROVIDERS.values())
    with WireServer(key=KEY, brain=brain, models=own_names) as server:

        async def run():
            reached = Reached(answer, server, brain, monkeypatch)
            try:
                await asyncio.wait_for(scenario(reached), 60)
            finally:
                await reached.model.close()

        asyncio.run(run())


@pytest.mark.parametrize("answer", LIMITS, ids=names(LIMITS))
def test_a_limit_at_the_check_is_waited_for_as_long_as_asked(answer, monkeypatch):
    async def scenario(reached):
        check = check_patiently(reached.model.check, reached.clock.sleep, reached.clock.now)
        if (answer.wait_s or 0.0) > LONGEST_CHECK_S:
            with pytest.raises(ProviderWaits) as raised:
                await check
            assert raised.value.until - time.time() == pytest.approx(answer.wait_s, abs=10.0)
            return
        assert (await check).model == reached.model.name
        assert reached.brain.calls == 2
        reached.check_wait(reached.clock.slept_s)

    meet(answer, monkeypatch, scenario)


@pytest.mark.parametrize("answer", LIMITS, ids=names(LIMITS))
def test_a_limit_while_an_agent_works_costs_it_nothing(answer, monkeypatch, tmp_path):
    """A long wait fails the call, which is made again after that time; whatever was answered is paid once."""

    async def scenario(reached):
        journal, long = MemoryJournal(), (answer.wait_s or 0.0) > LONGEST_WAIT_S
        async with gateway(tmp_path / "g", reached.model, journal) as opened:
            with opened.lend(ActionId(1), "solve") as lease:
                async with client(opened, lease.token) as http:
                    assert TEXT in (await reached.ask(http)).text
                    reached.brain.refusing = 1
                    response = await reached.ask(http)
                if not long:
                    assert (response.status_code, lease.failure) == (200, None)
                    assert not opened.caller.trouble
                assert not lease.refused, "it is no refusal of the agent's request"
            if long:
                assert not opened.caller.refused
                until = opened.caller.waits.until
                assert until - reached.clock.now() == pytest.approx(answer.wait_s, abs=10.0)
                await reached.clock.sleep(until - reached.clock.now())
                with opened.lend(ActionId(1), "solve") as lease:
                    async with client(opened, lease.token) as http:
                        assert TEXT in (await reached.ask(http)).text
                        assert TEXT in (await reached.ask(http)).text
                    assert lease.failure is None
        assert len(journal.paid) == reached.server.answered
        reached.check_wait(reached.clock.slept_s)

    meet(answer, monkeypatch, scenario, refusing=0)


@pytest.mark.parametrize("answer", ACCOUNTS, ids=names(ACCOUNTS))
def test_an_account_that_is_used_up_is_left_to_the_user_at_once(answer, monkeypatch, tmp_path):
    async def scenario(reached):
        with pytest.raises(ProviderRefuses):
            await check_patiently(reached.model.check)
        async with gateway(tmp_path / "g", reached.model, MemoryJournal()) as opened:
            with opened.lend(ActionId(1), "solve") as lease:
                async with client(opened, lease.token) as http:
                    assert (await reached.ask(http)).status_code == 503
                assert lease.failure is not None
            assert opened.caller.refused
        assert reached.clock.slept_s == 0.0

    meet(answer, monkeypatch, scenario, refusing=99)

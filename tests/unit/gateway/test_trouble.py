"""What is wrong with one model's provider is kept apart from another's that answers."""

import asyncio

import pytest

from dgm.domain import Budget
from dgm.errors import Infrastructure, ProviderRefuses, ProviderWaits
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import Gateway
from dgm.search.loop import GatewayAvailability
from tests.support.gateway.bench import ACTION, PRICE, MemoryJournal, chat, client
from tests.support.gateway.wire_provider import Provider, failing, whole

pytestmark = pytest.mark.slow


def talking(tmp_path, error):
    """What the supply says after the improving model failed and the solving one answered, and then answered itself."""

    async def scenario():
        solving, improving = Provider(), Provider(failing(error), failing(error), whole())
        improving.name = "openai-compatible/other"
        models = {"solve": solving, "improve": improving}
        journal = MemoryJournal()
        prices = {model.name: PRICE for model in models.values()}
        ledger = Ledger(prices, lambda: journal.spent, Budget)
        told = []
        async with Gateway(tmp_path / "g", journal, models, ledger) as opened:
            supply = GatewayAvailability(opened)
            for role in ("improve", "solve", "improve"):
                with opened.lend(ACTION, role) as lease:
                    async with client(opened, lease.token) as http:
                        await http.post("/chat/completions", json=chat(role + str(len(told))))
                told.append((supply.refused, supply.halted))
        return told

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def test_refusal_of_one_account_outlives_the_answers_of_another(tmp_path):
    words = "other: in arrears"
    told = talking(tmp_path, ProviderRefuses(words))
    # Before anything was answered it ends the session, afterwards it only pauses it.
    assert told == [(words, words), ("", words), ("", "")]


@pytest.mark.slow
def test_long_wait_halts_and_other_failures_do_not(tmp_path):
    words = "other: asks to wait"
    assert [halted for _, halted in talking(tmp_path / "a", ProviderWaits(words, 4e9))] == [words, words, ""]
    assert [halted for _, halted in talking(tmp_path / "b", ProviderWaits(words, 1.0))] == ["", "", ""]
    assert [halted for _, halted in talking(tmp_path / "c", Infrastructure(words))] == ["", "", ""]

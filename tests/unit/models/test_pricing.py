"""Prices: the shipped table, the user's, and what a call costs at most."""

import tomllib
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgm.config import PriceSettings, Settings
from dgm.domain import Usage
from dgm.errors import UserError
from dgm.models.addresses import is_loopback
from dgm.models.pricing import TABLE, LongInputPrices, Price, Prices, TokenRates

SHIPPED = Prices.load()
FLAT = Price(TokenRates(2.0, 0.1, 2.5, 10.0))
TIERED = Price(TokenRates(2.0, 0.1, 2.5, 10.0), (LongInputPrices(1000, TokenRates(4.0, 0.2, 5.0, 15.0)),))

money = st.floats(0, 1000, allow_nan=False)
rates = st.builds(TokenRates, money, money, money, money)
count = st.integers(0, 2_000_000)
prices = st.builds(
    lambda base, above, more: Price(base, tuple(map(LongInputPrices, sorted(above), more))),
    rates,
    st.sets(count, max_size=2),
    st.lists(rates, min_size=2, max_size=2),
)


@st.composite
def usages(draw):
    fresh, cached, written = draw(count), draw(count), draw(count)
    total = fresh + cached + written
    return Usage(1, total, draw(count), cached_tokens=cached, written_tokens=written)


def rows():
    table = tomllib.loads(TABLE.read_text())
    table.pop("as_of")
    return table


def priced(prices, url=None):
    return Prices.load(
        Settings(models={"prices": prices}, providers={"openai-compatible": {"base_url": url}})
    )


def test_each_kind_of_token_has_its_own_price():
    usage = Usage(
        1, 1_000_000, 100_000, cached_tokens=400_000, written_tokens=200_000, reasoning_tokens=50_000
    )
    assert FLAT.cost(usage) == pytest.approx(0.4 * 2.0 + 0.4 * 0.1 + 0.2 * 2.5 + 0.1 * 10.0)
    # A long call costs the long price from its first token.
    assert TIERED.cost(Usage(1, 1000, 10)) == pytest.approx((1000 * 2 + 10 * 10) / 1e6)
    assert TIERED.cost(Usage(1, 1001, 10)) == pytest.approx((1001 * 4 + 10 * 15) / 1e6)


def test_more_cached_tokens_than_input_cost_no_more_than_the_input():
    assert FLAT.cost(Usage(1, 10, 0, cached_tokens=30, written_tokens=5)) == pytest.approx(10 * 0.1 / 1e6)


def test_worst_case_takes_the_dearest_kind_and_length():
    assert TIERED.most(1000, 0) == pytest.approx(1000 * 2.5 / 1e6)
    assert TIERED.most(1001, 10) == pytest.approx((1001 * 5 + 10 * 15) / 1e6)


@given(prices, usages(), count, count)
def test_no_call_costs_more_than_its_worst_case(price, usage, more_input, more_output):
    assert price.cost(usage) <= price.most(usage.input_tokens + more_input, usage.output_tokens + more_output)


@pytest.mark.parametrize("name", rows())
def test_shipped_row_is_complete_and_says_where_it_is_from(name):
    row = rows()[name]
    known = {
        "input",
        "cached_input",
        "cache_write",
        "output",
        "max_output",
        "context",
        "long",
        "source",
        "read",
    }
    assert set(row) <= known | {"via", "snapshots", "default"}
    assert {"input", "cached_input", "output", "source", "read"} <= set(row)
    provider = name.partition("/")[0]
    domain = {"openai": "https://developers.openai.com/", "anthropic": "https://platform.claude.com/"}[
        provider
    ]
    assert row["source"].startswith(domain)
    assert date(2026, 1, 1) <= row["read"] <= SHIPPED.as_of
    assert 0 < row["cached_input"] <= row["input"] < row["output"]
    # Anthropic bills what is written to its cache apart, for every model.
    assert "cache_write" in row or provider == "openai"
    if "long" in row:
        assert {"above", "input", "cached_input", "cache_write", "output"} == set(row["long"])
        assert row["long"]["input"] > row["input"]


def test_unknown_price_is_an_error_that_says_where_to_put_it():
    with pytest.raises(UserError) as caught:
        SHIPPED.of("openai/gpt-6.2-soll")
    line = str(caught.value)
    assert '[models.prices."openai/gpt-6.2-soll"]' in line
    assert "openai/gpt-6.2-sol" in line.split("nearest")[1]
    assert "\n" not in line


def test_dated_name_is_priced_only_where_the_provider_says_it_is_the_same():
    assert SHIPPED.of("openai/gpt-5-mini-2025-08-07") == SHIPPED.of("openai/gpt-5-mini")
    with pytest.raises(UserError, match="nobody has said"):
        SHIPPED.of("openai/gpt-6.2-sol-2027-01-01")


@pytest.mark.parametrize("name", ["offline", "recorded", "dry-run"])
def test_what_runs_here_costs_nothing_unless_priced(name):
    assert SHIPPED.of(name).most(10**6, 10**6) == 0
    assert priced({name: PriceSettings(input=1, output=1)}).of(name).most(10**6, 0) == pytest.approx(1)


def test_compatible_model_is_free_on_this_machine_and_unknown_elsewhere():
    here = priced({}, "http://127.0.0.1:11434/v1")
    assert here.of("openai-compatible/qwen").most(10**6, 10**6) == 0
    with pytest.raises(UserError, match="openai-compatible/qwen"):
        priced({}, "https://openrouter.ai/api/v1").of("openai-compatible/qwen")
    with pytest.raises(UserError, match="openai/x"):
        here.of("openai/x")


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://LOCALHOST/v1", True),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://10.0.0.5:8000", False),
        ("http://user@127.0.0.1:80@example.org/", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_loopback_is_told_from_elsewhere(url, here):
    assert is_loopback(url) is here


@pytest.mark.parametrize(
    ("max_output", "context", "wished", "limit"),
    [
        (None, None, None, 16_000),
        (8_000, None, None, 8_000),
        (64_000, 200_000, None, 32_000),
        (64_000, 40_000, None, 20_000),
        (None, 8_192, None, 4_096),
        (None, None, 50_000, 50_000),
        (8_000, 10_000, 50_000, 8_000),
        (None, 8_192, 6_000, 6_000),
    ],
)
def test_a_reply_may_have_what_the_settings_say_or_else_what_the_model_gives(
    max_output, context, wished, limit
):
    assert replace(FLAT, max_output=max_output, context=context).reply_limit(wished) == limit

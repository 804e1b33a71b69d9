"""Cost of a model call: the shipped price table (``pricing.toml``), the user's additions, and the arithmetic.

Prices are USD per million tokens. A missing price is an error and never zero. ``dgm.gateway.ledger`` reserves money and
enforces budgets.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from dgm.config import PriceSettings, Settings
from dgm.config.toml_files import read_toml
from dgm.domain import Usage
from dgm.errors import UserError
from dgm.models.addresses import is_loopback
from dgm.models.scripted import SCRIPTED

TABLE = Path(__file__).with_name("pricing.toml")
_COMPATIBLE = "openai-compatible"
FREE_MODELS = ("offline", "recorded", "dry-run")
MILLION = 1_000_000
REPLY_TOKENS = 16_000
"""Maximum output tokens of one reply of a model whose own maximum is not known."""
MAX_REPLY_TOKENS = 32_000
"""Maximum output tokens of one reply of a model that can give more: each call sets aside the money for all of them."""
SLACK = 1 + 1e-12
"""Factor that makes a worst case larger than any cost that differs from it by rounding alone."""


def is_free(model: str) -> bool:
    """Return whether a model costs nothing, wherever it runs."""
    return model in FREE_MODELS or model.startswith(SCRIPTED)


@dataclass(frozen=True, slots=True)
class TokenRates:
    """USD per million tokens of each kind."""

    input: float
    """Price of input neither read from the provider's cache nor written to it."""
    cached_input: float
    cache_write: float
    output: float
    """Price of output, reasoning included."""

    @property
    def dearest_input(self) -> float:
        """The highest price that an input token can have."""
        return max(self.input, self.cached_input, self.cache_write)


@dataclass(frozen=True, slots=True)
class LongInputPrices:
    """Prices for the whole of a call whose input, cached and written tokens included, is above a limit."""

    above: int
    """Limit in tokens."""
    rates: TokenRates


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model."""

    rates: TokenRates
    long: tuple[LongInputPrices, ...] = ()
    """In ascending order of ``above``."""
    max_output: int | None = None
    """Maximum tokens of one reply, reasoning included; None if it is not known."""
    context: int | None = None
    """Tokens of input and output together; None if it is not known."""

    def cost(self, usage: Usage) -> float:
        """Return the USD for one call, at the rates for ``usage.input_tokens``.

        The sum over several calls is the cost of their summed usage only if no ``long`` price applies.
        """
        reached = (tier.rates for tier in reversed(self.long) if usage.input_tokens > tier.above)
        rates = next(reached, self.rates)
        # A provider that reports more cached tokens than input is not paid for the excess.
        cached = min(usage.cached_tokens, usage.input_tokens)
        written = min(usage.written_tokens, usage.input_tokens - cached)
        fresh = usage.input_tokens - cached - written
        input_cost = fresh * rates.input + cached * rates.cached_input + written * rates.cache_write
        return (input_cost + usage.output_tokens * rates.output) / MILLION

    def reply_limit(self, wished: int | None) -> int:
        """Return the maximum output tokens of one reply, reasoning included.

        Args:
            wished: ``limits.output_tokens``; None: as many as the model gives, up to ``MAX_REPLY_TOKENS``, but
                at most half of its context, and ``REPLY_TOKENS`` where its maximum is not known.
        """
        limit = wished
        if limit is None:
            limit = REPLY_TOKENS if self.max_output is None else MAX_REPLY_TOKENS
            limit = limit if self.context is None else min(limit, max(self.context // 2, 1))
        return min(limit, self.max_output or limit)

    def saved(self, usage: Usage) -> float:
        """Return the USD that the provider's cache saved; below 0 if more was written to it than was read from it."""
        return self.cost(replace(usage, cached_tokens=0, written_tokens=0)) - self.cost(usage)

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """Return the maximum USD of one call with at most these tokens, however they are cached."""
        reached = [self.rates, *(tier.rates for tier in self.long if input_tokens > tier.above)]
        dearest = max(input_tokens * rates.dearest_input + output_tokens * rates.output for rates in reached)
        return dearest / MILLION * SLACK


FREE = Price(TokenRates(0.0, 0.0, 0.0, 0.0))
"""Price of models on this machine, for which nobody sends a bill."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The price of every model that is known to have one."""

    as_of: date
    """Date of the last review of the shipped table."""
    rows: Mapping[str, Price]
    """Prices by full name, as in ``openai/gpt-6.2-sol``."""
    snapshots: Mapping[str, str]
    """Dated name → the row that holds for it: only if the provider says that they are the same model."""
    defaults: Mapping[str, str]
    """Provider → its model for ``auto``."""
    local: frozenset[str] = frozenset()
    """Names of compatible servers at a loopback address."""

    @classmethod
    def load(cls, settings: Settings | None = None) -> "Prices":
        """Return the shipped table merged with the prices of the settings, which win row by row.

        The models of a compatible server at a loopback address cost nothing unless they are priced.
        """
        settings = settings or Settings()
        table = read_toml(TABLE)
        as_of = table.pop("as_of")
        rows = {name: _parse_price(row) for name, row in table.items()}
        dated = {
            f"{name.partition('/')[0]}/{snapshot}": name
            for name, row in table.items()
            for snapshot in row.get("snapshots", ())
        }
        defaults = {name.partition("/")[0]: name for name, row in table.items() if row.get("default")}
        rows |= {
            name: _merge_user_price(given, rows.get(dated.get(name, name)))
            for name, given in settings.models.prices.items()
        }
        local = frozenset(
            name
            for name, provider in settings.providers.items()
            if (provider.kind or name) == _COMPATIBLE and is_loopback(provider.base_url or "")
        )
        return cls(as_of, rows, dated, defaults, local)

    def of(self, model: str) -> Price:
        """Return the price of a model by its full name.

        Raises:
            UserError: the model has no price; the message says where to set it.
        """
        if price := self._find(model):
            return price
        near = difflib.get_close_matches(model, self.rows, 3, 0.7)
        hint = f"; nearest that are known: {', '.join(near)}" if near else ""
        raise UserError(
            f"nobody has said what the model '{model}' costs: add [models.prices.\"{model}\"] input = … output = … "
            f"to the settings file, in USD per million tokens (0 is a price){hint}"
        )

    def knows(self, model: str) -> bool:
        """Return whether the model has a price."""
        return self._find(model) is not None

    def reply_limit(self, model: str, wished: int | None) -> int:
        """Return ``Price.reply_limit`` of a model, priced or not."""
        return (self._find(model) or FREE).reply_limit(wished)

    def _find(self, model: str) -> Price | None:
        row = self.rows.get(model) or self.rows.get(self.snapshots.get(model, model))
        if row is not None:
            return row
        return FREE if is_free(model) or model.partition("/")[0] in self.local else None


def _parse_price(row: Mapping[str, Any]) -> Price:
    long = row.get("long")
    tiers = (LongInputPrices(long["above"], _parse_rates(long)),) if long else ()
    return Price(_parse_rates(row), tiers, row.get("max_output"), row.get("context"))


def _parse_rates(row: Mapping[str, Any]) -> TokenRates:
    cached, written = (row.get(key, row["input"]) for key in ("cached_input", "cache_write"))
    return TokenRates(*map(float, (row["input"], cached, written, row["output"])))


def _merge_user_price(given: PriceSettings, shipped: Price | None) -> Price:
    """Apply a user's price at every input length; keep the shipped context and output limits."""
    price = _parse_price(given.model_dump(exclude_none=True))
    if shipped is None:
        return price
    return replace(price, max_output=price.max_output or shipped.max_output, context=shipped.context)

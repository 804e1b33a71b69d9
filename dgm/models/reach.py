"""Where the settings of a run would send this user's secrets and money, as subjects of consent.

A provider's own address, its usual key variable and the shipped prices need none.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.config import ModelsSettings
from dgm.consents import Subject
from dgm.models.providers import PROVIDERS

_HARMLESS = frozenset(
    {"concurrency", "waiting", "requests_per_minute", "tokens_per_minute", "timeout_s", "tries", "backoff_s"}
    | {"stream", "tools", "api", "reasoning_effort"}
)
"""Settings of a provider that decide neither where a request goes nor what goes with it."""
VALUE_CHARS = 200
_PRICE = "price of "


def list_reach(models: ModelsSettings) -> Sequence[Subject]:
    """Return what the settings name of addresses, variables of keys and prices that are not the usual ones."""
    return [_make_subject(name, own) for name, own in _find_own(models).items()]


def list_unagreed(after: ModelsSettings, before: ModelsSettings) -> Sequence[Subject]:
    """Return what this user has neither agreed to nor chosen now.

    Args:
        after: settings that are about to be used.
        before: settings of the run that they come from. What differs is the user's choice, so nothing is returned that
            shares no value with the run, or changes what the user agreed to earlier.
    """
    theirs = _find_own(before)
    found = []
    for name, own in _find_own(after).items():
        old = theirs.get(name)
        if old is None or not any(old.get(key) == value for key, value in own.items()):
            continue
        if not any(_make_subject(name, each).is_agreed() for each in (own, old)):
            found.append(_make_subject(name, own))
    return found


def _find_own(models: ModelsSettings) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for provider in PROVIDERS.values():
        section = provider.settings(models).model_dump(mode="json", exclude_defaults=True)
        own = {name: value for name, value in section.items() if name not in _HARMLESS and value is not None}
        if own.get("key_env") == provider.key_env:
            del own["key_env"]
        if own:
            found[provider.name] = own
    prices = models.model_dump(mode="json", exclude_none=True)["prices"]
    return found | {f"{_PRICE}{model}": row for model, row in prices.items()}


def _make_subject(name: str, own: Mapping[str, Any]) -> Subject:
    shown = own if not name.startswith(_PRICE) else {key: own[key] for key in ("input", "output")}
    values = ", ".join(f"{key} = {_format_value(value)}" for key, value in shown.items())
    return Subject(json.dumps(["models", name, own], sort_keys=True), f"{name}: {values}")


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Cut, so that a long value hides none of the others.
    return text if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…"

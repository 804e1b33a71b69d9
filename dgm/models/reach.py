"""Where the settings of a run or a file would send this user's secrets and money, as subjects of consent.

A provider's own address, its usual key variable and the shipped prices need none.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm.config import Settings, read_frozen
from dgm.config.resolving import read_settings_file
from dgm.consents import ConsentNeeded, Subject
from dgm.models.providers import providers_of

_HARMLESS = frozenset(
    {"concurrency", "requests_per_minute", "tokens_per_minute", "timeout_s", "tries", "backoff_s"}
    | {"stream", "tools", "api", "reasoning_effort"}
)
"""Settings of a provider that decide neither where a request goes nor what goes with it."""
VALUE_CHARS = 200
_PRICE = "price of "


def list_reach(settings: Settings) -> Sequence[Subject]:
    """Return what the settings name of addresses, variables of keys and prices that are not the usual ones."""
    return [_make_subject(name, own) for name, own in _find_own(settings).items()]


def list_unagreed(after: Settings, before: Settings) -> Sequence[Subject]:
    """Return what this user has neither agreed to nor chosen now.

    Args:
        after: settings that are about to be used.
        before: settings of the run that they come from. What differs is the user's choice, so nothing is returned that
            shares no value with the run, or changes what the user agreed to earlier.
    """
    return list(_find_unagreed(after, before).values())


def file_models(file: Path) -> Settings:
    """Return settings with what a file itself says of models and their providers.

    Raises:
        UserError: it cannot be read, or a value is invalid.
    """
    tables = read_settings_file(file)
    return read_frozen({name: tables.get(name, {}) for name in ("models", "providers")}, str(file))


def require_own_file(file: Path, after: Settings, before: Settings) -> None:
    """Make sure that this user has agreed to a file of settings that sends a key to an address of its own.

    Args:
        file: where they stand, for the message.
        after: settings that are about to be used.
        before: those that the file names. What differs is the user's choice.

    Raises:
        ConsentNeeded: the file may be a stranger's, and this user has not agreed to it.
    """
    unagreed = _find_unagreed(after, before)
    if not any(_sends_secret(name, after) for name in unagreed):
        return
    words = "; ".join(one.words for one in unagreed.values())
    raise ConsentNeeded(
        f"{file}: would send a key to an address of its own: {words}",
        f"{file} may be another person's. Use its {words}",
        list(unagreed.values()),
    )


def _sends_secret(name: str, settings: Settings) -> bool:
    """Return whether the settings of a provider let a value of the environment go to an address that they name."""
    if not (provider := providers_of(settings).get(name)):
        return False
    own, kind = provider.settings, provider.kind
    added = json.dumps([dict(own.extra_headers), own.extra_body])
    has_key = kind.is_cloud or not kind.key_is_optional or own.key_env is not None
    has_key = has_key or bool(os.environ.get(provider.key_env, "").strip())
    return bool(own.base_url and (has_key or '"env:' in added))


def _find_unagreed(after: Settings, before: Settings) -> Mapping[str, Subject]:
    theirs = _find_own(before)
    found = {}
    for name, own in _find_own(after).items():
        old = theirs.get(name)
        if old is None or not any(old.get(key) == value for key, value in own.items()):
            continue
        if not any(_make_subject(name, each).is_agreed() for each in (own, old)):
            found[name] = _make_subject(name, own)
    return found


def _find_own(settings: Settings) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for name, provider in settings.providers.items():
        said = provider.model_dump(mode="json", exclude_defaults=True)
        own = {key: value for key, value in said.items() if key not in _HARMLESS}
        if own.get("key_env") == providers_of(settings)[name].kind.key_env:
            del own["key_env"]
        if own.keys() - {"kind"}:
            found[name] = own
    for model, changes in settings.models.requests.items():
        if changes.set:
            found[f"requests of {model}"] = changes.set
    prices = settings.models.model_dump(mode="json", exclude_none=True)["prices"]
    return found | {f"{_PRICE}{model}": row for model, row in prices.items()}


def _make_subject(name: str, own: Mapping[str, Any]) -> Subject:
    shown = own if not name.startswith(_PRICE) else {key: own[key] for key in ("input", "output")}
    values = ", ".join(f"{key} = {_format_value(value)}" for key, value in shown.items())
    return Subject(json.dumps(["models", name, own], sort_keys=True), f"{name}: {values}")


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Cut, so that a long value hides none of the others.
    return text if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…"

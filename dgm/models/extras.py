"""Additions of the settings to every request: ``extra_headers``, ``extra_body`` and ``reasoning_effort``.

A value ``env:NAME`` is read from the environment when a model is opened, and is a secret from then on.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.messages import JsonObject, WireProtocol

_FROM_ENVIRONMENT = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
_LISTS = frozenset({"anthropic-beta"})
"""Headers whose values from several sources are joined by commas."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Headers and body keys that are sent with every request to one provider."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers with lower-case names."""
    body: JsonObject = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    """Values that came from the environment."""

    def add_to_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request with these added; these win, and lists (``anthropic-beta``) are joined."""
        merged = {name.lower(): value for name, value in headers.items()}
        for name, value in self.headers.items():
            given = merged.get(name)
            merged[name] = f"{given},{value}" if given and name in _LISTS else value
        return merged

    def add_to_body(self, body: JsonObject) -> dict[str, Any]:
        """Return the body of a request with these keys, nested objects merged; these win."""
        return _merge(body, self.body)


def read_extras(settings: ProviderSettings, section: str) -> Extras:
    """Return the additions in a provider's settings.

    Args:
        settings: of the provider.
        section: their name, for messages: ``providers.openai``.

    Raises:
        UserError: a variable is not set, a header cannot be sent, or a secret stands in the settings themselves.
    """
    secrets: list[str] = []
    headers = {}
    for name, value in settings.extra_headers.items():
        where = f"{section}.extra_headers.{name}"
        if not _HEADER_NAME.fullmatch(name):
            raise UserError(f"{where}: not a name of a header")
        if name.lower() in _SECRET_HEADERS and not _FROM_ENVIRONMENT.fullmatch(value):
            raise UserError(
                f"{where}: settings are published with runs and hold no secrets: put the value into an environment "
                'variable and write "env:NAME"'
            )
        resolved = _resolve(value, where, secrets)
        if not all(" " <= character <= "~" for character in resolved):
            raise UserError(f"{where}: the value holds a character that no header can carry")
        headers[name.lower()] = resolved
    body = {
        name: _resolve_all(value, f"{section}.extra_body.{name}", secrets)
        for name, value in settings.extra_body.items()
    }
    return Extras(headers, body, tuple(secrets))


def default_effort(body: JsonObject, protocol: WireProtocol, effort: str | None) -> JsonObject:
    """Return the body with a reasoning effort if it names none; the same object if nothing is added.

    Call it before the learned abilities of the model are applied, so that a refused effort stays left out.

    Args:
        body: of a request.
        protocol: of that request.
        effort: ``reasoning_effort`` of the provider's settings.
    """
    if not effort:
        return body
    match protocol:
        case WireProtocol.CHAT:
            named = "reasoning_effort" in body or "reasoning" in body
            return body if named else {**body, "reasoning_effort": effort}
        case WireProtocol.RESPONSES:
            return _with_inner_effort(body, "reasoning", effort)
        case WireProtocol.MESSAGES:
            return _with_inner_effort(body, "output_config", effort)


def _with_inner_effort(body: JsonObject, key: str, effort: str) -> JsonObject:
    inner = body.get(key)
    if inner is None:
        return {**body, key: {"effort": effort}}
    if not isinstance(inner, Mapping) or inner.get("effort") is not None:
        return body
    return {**body, key: {**inner, "effort": effort}}


def _resolve(value: str, where: str, secrets: list[str]) -> str:
    named = _FROM_ENVIRONMENT.fullmatch(value)
    if not named:
        return value
    secret = os.environ.get(named[1], "").strip()
    if not secret:
        raise UserError(f"{where}: the environment variable {named[1]} is not set")
    secrets.append(secret)
    return secret


def _resolve_all(value: Any, where: str, secrets: list[str]) -> Any:  # noqa: ANN401  (any JSON)
    match value:
        case str():
            return _resolve(value, where, secrets)
        case Mapping():
            return {name: _resolve_all(inner, f"{where}.{name}", secrets) for name, inner in value.items()}
        case list() | tuple():
            return [_resolve_all(inner, where, secrets) for inner in value]
        case _:
            return value


def _merge(body: JsonObject, extra: JsonObject) -> dict[str, Any]:
    merged = dict(body)
    for name, value in extra.items():
        given = merged.get(name)
        nested = isinstance(given, Mapping) and isinstance(value, Mapping)
        merged[name] = _merge(given, value) if nested and given is not None else value
    return merged

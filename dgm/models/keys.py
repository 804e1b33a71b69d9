"""Keys of providers: read from the environment in one place, and cut out of whatever is said or logged."""

import logging
import os
import re
from collections.abc import Iterable, Sequence

from dgm.errors import UserError

_SHORTEST_SECRET = 8
"""A shorter value is a placeholder (``x``, ``none``) that local servers are given: masking it would eat plain words."""
_FRAGMENT = 12
"""So many characters in a row of a key are taken for an echo of it."""
_LONG_SECRET = 20
"""Fragments are looked for in keys of this length on; shorter ones are words that people chose."""
_LIKE_A_KEY = re.compile(r"\bsk-[A-Za-z0-9_\-]{8,}")
_MASK = "***"


def read_key(env_name: str) -> str:
    """The key in that environment variable, without the whitespace around it.

    Raises:
        UserError: the variable is missing or empty, or holds what no key holds.
    """
    key = os.environ.get(env_name, "").strip()
    if not key:
        raise UserError(f"{env_name} is not set: put the provider's key into it (export {env_name}=...)")
    for place, character in enumerate(key, 1):
        if not "!" <= character <= "~":
            kind = (
                "a space or control character"
                if character.isspace() or character < " "
                else "no ASCII character"
            )
            raise UserError(f"{env_name}: character {place} of {len(key)} is {kind}: copy the key again")
    return key


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the secrets, long fragments of them, and whatever looks like an OpenAI or Anthropic key.

    Secrets of fewer than 8 characters are placeholders and stay. What a provider has masked itself stays readable.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _MASK)
        if len(secret) >= _LONG_SECRET:
            text = _without_fragments(text, secret)
    return _LIKE_A_KEY.sub(f"sk-{_MASK}", text)


def _without_fragments(text: str, secret: str) -> str:
    fragments = {secret[start : start + _FRAGMENT] for start in range(len(secret) - _FRAGMENT + 1)}
    kept: list[str] = []
    place = done = 0
    while place <= len(text) - _FRAGMENT:
        if text[place : place + _FRAGMENT] not in fragments:
            place += 1
            continue
        end = place + _FRAGMENT
        while end < len(text) and text[end - _FRAGMENT + 1 : end + 1] in fragments:
            end += 1
        kept += [text[done:place], _MASK]
        place = done = end
    return "".join([*kept, text[done:]])


class KeyFilter(logging.Filter):
    """Masks keys in the message, the arguments and the exception of every record, whoever logged it."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self.secrets = tuple(secrets)
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the record where it holds a key; never drops one."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # Logging would print the arguments of such a record to stderr as they are.
            message = f"{record.msg} {record.args!r}"
            record.msg, record.args = message, None
        if (clean := masked(message, self.secrets)) != message:
            record.msg, record.args = clean, None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text and (clean := masked(record.exc_text, self.secrets)) != record.exc_text:
            # Handlers that render exceptions themselves would read them from here.
            record.exc_text, record.exc_info = clean, None
        if record.stack_info:
            record.stack_info = masked(record.stack_info, self.secrets)
        return True


def guard_logs(secrets: Sequence[str]) -> None:
    """Puts a ``KeyFilter`` on every handler of the root logger, and on the one of last resort.

    Filters of a logger would see only what is logged by that very logger; those of handlers see everything. Handlers
    that are added later are not guarded; those that guard these secrets already are left as they are.
    """
    for handler in (*logging.getLogger().handlers, logging.lastResort):
        if handler is not None and not any(_guards(known, secrets) for known in handler.filters):
            handler.addFilter(KeyFilter(secrets))


def _guards(known: object, secrets: Sequence[str]) -> bool:
    return isinstance(known, KeyFilter) and known.secrets == tuple(secrets)

"""Keys of providers: read from the environment in one place, and masked in all messages and logs."""

import logging
import os
import re
from collections.abc import Iterable, Sequence

from dgm.errors import UserError

_SHORTEST_SECRET = 8
"""Minimum length of a secret; a shorter value is a placeholder (``x``, ``none``) and would also mask plain words."""
_FRAGMENT = 12
"""Consecutive characters of a key that count as an echo of it."""
_LONG_SECRET = 20
"""Minimum length of a key whose fragments are masked; shorter ones are words that people chose."""
_LIKE_A_KEY = re.compile(r"\bsk-[A-Za-z0-9_\-]{8,}")
_MASK = "***"


def read_key(env_name: str) -> str:
    """Return the key in that environment variable, without the whitespace around it.

    Raises:
        UserError: the variable is missing or empty, or holds characters that no key has.
    """
    key = os.environ.get(env_name, "").strip()
    if not key:
        raise UserError(f"{env_name} is not set: put the provider's key into it (export {env_name}=...)")
    strange = next((place for place, character in enumerate(key, 1) if not "!" <= character <= "~"), 0)
    if strange:
        raise UserError(
            f"{env_name}: character {strange} of {len(key)} is no visible ASCII character: copy the key again"
        )
    return key


def mask_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without the secrets, long fragments of them, and texts in the form of a vendor's key.

    The vendors are OpenAI and Anthropic. Secrets of fewer than 8 characters are placeholders and stay. Text that a
    provider has masked itself stays readable.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _MASK)
        if len(secret) >= _LONG_SECRET:
            text = _mask_fragments(text, secret)
    return _LIKE_A_KEY.sub(f"sk-{_MASK}", text)


def _mask_fragments(text: str, secret: str) -> str:
    fragments = {re.escape(secret[start : start + _FRAGMENT]) for start in range(len(secret) - _FRAGMENT + 1)}
    pieces: list[str] = []
    end = 0
    for match in re.finditer(f"(?={'|'.join(sorted(fragments))})", text):
        if not pieces or match.start() > end:
            pieces += [text[end : match.start()], _MASK]
        end = match.start() + _FRAGMENT
    return "".join([*pieces, text[end:]])


class KeyFilter(logging.Filter):
    """A filter that masks keys in the message, the arguments and the exception of every record from any logger."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self.secrets = tuple(secrets)
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record if it holds a key; never drop one."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # Logging would print the arguments of such a record to stderr unmasked.
            message = f"{record.msg} {record.args!r}"
            record.msg, record.args = message, None
        if (clean := mask_secrets(message, self.secrets)) != message:
            record.msg, record.args = clean, None
        if record.exc_info:
            text = record.exc_text or self._formatter.formatException(record.exc_info)
            if (clean := mask_secrets(text, self.secrets)) != text:
                # Handlers that render exceptions themselves would read them from here.
                record.exc_text, record.exc_info = clean, None
        if record.stack_info:
            record.stack_info = mask_secrets(record.stack_info, self.secrets)
        return True


def guard_logs(secrets: Sequence[str]) -> None:
    """Put a ``KeyFilter`` on every handler of the root logger, and on the handler of last resort.

    Filters of handlers see everything; those of a logger only its own records. Handlers added later are not guarded.
    """
    for handler in filter(None, (*logging.getLogger().handlers, logging.lastResort)):
        guarded = [known.secrets for known in handler.filters if isinstance(known, KeyFilter)]
        if tuple(secrets) not in guarded:
            handler.addFilter(KeyFilter(secrets))


def mask_secret_bytes(content: bytes, secrets: Iterable[str]) -> bytes:
    """Return a body without keys and long fragments of them, which providers quote."""
    text = content.decode("utf-8", "surrogateescape")
    clean = mask_secrets(text, secrets)
    return content if clean == text else clean.encode("utf-8", "surrogateescape")

"""Note the parts that are left out of a request because they may not pass and do not change the question.

The readers of requests (``allowed`` and ``translation``) name it here while they read; the gateway notes it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_collected: ContextVar[dict[str, None] | None] = ContextVar("left_out", default=None)
LEFT_OUT = "left_out"
"""Code of the note, among the recorded refusals, that a part of requests is left out; its status is 200."""
_MEDIA = re.compile(r"(?:data:)?([a-z]+/[\w.+-]+)")
_INDEX = re.compile(r"\[\d+\]")


@contextmanager
def collect_left_out() -> Iterator[dict[str, None]]:
    """Collect, in the order of reading, the names of what is left out within the context; each name once."""
    collected: dict[str, None] = {}
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def leave_out(name: str) -> None:
    """Name something that is left out; a place in lists (``tools[3].strict``) loses its indexes."""
    collected = _collected.get()
    if collected is not None:
        collected[_INDEX.sub("", name)] = None


def describe_media(part: Mapping[str, Any]) -> str:
    """Return the text that stands for a picture, or another part that is no text, where only texts can be sent."""
    kind = str(part.get("type"))[:40]
    name = "picture" if "image" in kind or "screenshot" in kind else kind
    leave_out(f"a {name} in the result of a tool")
    media = _media_type(part)
    return f"[{name} not shown: {media}]" if media else f"[{name} not shown]"


def _media_type(part: Mapping[str, Any]) -> str:
    """Return what a part declares: ``image/png``, or the beginning of its ``data:`` address; empty if it does not."""
    for key in ("source", "image_url", "file", "file_data"):
        held = part.get(key)
        if isinstance(held, dict):
            held = held.get("media_type") or held.get("url") or held.get("file_data")
        if isinstance(held, str) and (found := _MEDIA.match(held[:120])):
            return found[1]
    return ""

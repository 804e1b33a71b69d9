"""Note the parts that are left out of a request because they may not pass and do not change the question.

The readers of requests (``allowed`` and ``translation``) name it here while they read; the gateway notes it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dgm.wires.neutral import describe_part

_collected: ContextVar[dict[str, None] | None] = ContextVar("left_out", default=None)
LEFT_OUT = "left_out"
"""Code of the note, among the recorded refusals, that a part of requests is left out; its status is 200."""
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
    """Return the text that stands for a part where only texts can be sent, and note that it is left out."""
    text = describe_part(part)
    leave_out(f"a {text[1:].partition(' not shown')[0]} in the result of a tool")
    return text

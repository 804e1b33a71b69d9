"""JSON bytes, written fast."""

import json

import orjson


def dump_json(value: object) -> bytes:
    """Return a value as JSON; half a surrogate pair, which has no UTF-8 form, becomes a question mark."""
    try:
        return orjson.dumps(value)
    except TypeError:  # also for numbers beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

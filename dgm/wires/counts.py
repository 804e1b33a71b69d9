"""Tokens of one call, by each provider's count, or estimated without one."""

from collections.abc import Mapping
from typing import Any

from dgm.domain import Usage
from dgm.messages import JsonObject
from dgm.wires.values import characters, count_of, estimate

_NOT_READ = ("model", "stream", "stream_options", "metadata", "user")


def count_request_chars(request: JsonObject) -> int:
    """Return the approximate number of characters of a request that the model reads."""
    return characters({name: value for name, value in request.items() if name not in _NOT_READ})


def openai_usage(whole: JsonObject, request: JsonObject, said: int, read: str, wrote: str) -> Usage:
    """Return the usage of a call by one of OpenAI's protocols, or of a server that is compatible with it.

    A count that is missing or 0 becomes characters / 4, so that no call counts as free. A given total decides whether
    reasoning is within the output or beside it (Gemini counts it in the total but not in the output). Without a total,
    reasoning that is larger than the output is beside it (xAI).

    Args:
        whole: the whole answer.
        request: the request's body.
        said: characters of the answer.
        read: ``prompt`` or ``input``: the protocol's word for tokens that were read.
        wrote: ``completion`` or ``output``: its word for tokens that were written.
    """
    counts = whole.get("usage")
    given: Mapping[str, Any] = counts if isinstance(counts, Mapping) else {}
    details, thought = given.get(f"{read}_tokens_details"), given.get(f"{wrote}_tokens_details")
    into = count_of(given, f"{read}_tokens") or _split_by_cache(given)
    out, total = count_of(given, f"{wrote}_tokens"), count_of(given, "total_tokens")
    reasoning = max(count_of(thought, "reasoning_tokens"), count_of(given, "reasoning_tokens"))
    if total > out and not into:
        into = total - out if out else 0
    if total and into:
        out = max(out, total - into)
    elif reasoning > out:
        out += reasoning
    into = into or estimate(count_request_chars(request))
    out = out or estimate(said)
    cached = max(
        count_of(details, "cached_tokens"),
        count_of(given, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"),
    )
    written = max(
        count_of(details, "cache_write_tokens", "cache_creation_tokens"),
        count_of(given, "cache_creation_input_tokens"),
    )
    cached = min(cached, into)
    return Usage(
        calls=1,
        input_tokens=into,
        output_tokens=out,
        cached_tokens=cached,
        written_tokens=min(written, into - cached),
        reasoning_tokens=min(reasoning, out),
    )


def _split_by_cache(counts: Mapping[str, Any]) -> int:
    """Return the input if it is given only as cached and uncached tokens (DeepSeek)."""
    return count_of(counts, "prompt_cache_hit_tokens") + count_of(counts, "prompt_cache_miss_tokens")

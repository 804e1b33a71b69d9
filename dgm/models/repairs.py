"""The few changes with which dgm itself repeats a refused request, and the parameter that another refusal names.

Repaired are the output limit's name and size, ``temperature``, streaming, ``stream_options``,
``parallel_tool_calls``, the effort, ``tool_choice``, ``store``, which dgm adds itself, and hints without which the
question is the same, such as ``client_metadata``. Everything else is left to ``models.requests`` of the settings.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dgm.messages import JsonObject, WireProtocol
from dgm.models.abilities import Abilities
from dgm.models.refusals import ProviderRefusal

SMALLEST_ROOM = 16
"""Minimum useful output tokens; with less, the prompt alone is too long."""
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_HINTS = (
    *("client_metadata", "metadata", "context_management", "safety_identifier", "service_tier"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "verbosity", "text.verbosity"),
)
"""Paths without which the question is the same; programs send them unasked."""
_MENTIONS = {
    **{name: re.escape(name) for name in _HINTS},
    "temperature": r"temperature",
    "top_p": r"top_p",
    "stream_options": r"stream[_ ]options|include_usage",
    "parallel_tool_calls": r"parallel[_ ]tool[_ ]calls",
    "tool_choice": r"tool[_ ]choice|forced? tool use",
    "reasoning_effort": r"reasoning_?effort|support (?:thinking|reasoning)|reasoning is not",
    "reasoning.effort": r"reasoning[_.]?effort|support (?:thinking|reasoning)|reasoning is not",
    "output_config.effort": r"effort",
    "store": r"store",
    **{name: name for name in _LIMITS},
}
"""Paths of a body that may be left out, and how messages name them."""
_NOT = r"(?:not|n[o'’]t|cannot|never) (?:\w+ )?(?:be )?"
_REFUSED = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extra[_ ](?:input|forbidden)|extraneous"
    rf"|additional propert|{_NOT}(?:support|permit|allow|accept|recogni|available|enabled|used|set|specif|both)"
    r"|only (?:the )?(?:default|\S+ (?:is|are) (?:allowed|supported))|(?:may|can) only be|cannot find field"
    r"|strictly positive|no endpoints found|when tool_choice forces",
    re.IGNORECASE,
)
"""Words that refuse a parameter itself, not the value that the agent chose for it."""
_ADVICE = re.compile(
    r"instead|did you mean|expected one of|\bunless\b|, (?:please )?use "
    r"|(?<!un)(?:supported|allowed|permitted) (?:param|values|fields)",
    re.IGNORECASE,
)
"""Words after which a sentence says what would be accepted."""
_STREAM_REFUSED = re.compile(
    r"verified to stream\b|(?:not|n.t) support (?:tools? \w+ in )?stream(?:ing|ed)?\b(?![ _]options)|in streaming mode"
    r"|stream(?:ing)?(?: mode| with tools)? is not supported|unsupported parameter: .stream\b",
    re.IGNORECASE,
)
_STREAM_WANTED = re.compile(r"only supports? stream|must (?:have|set|use|be) stream", re.IGNORECASE)
_N = r"(\d[\d,]*)"
_LIMIT_NAMED = re.compile(
    r"max\w*[ _]tokens?\w*|max(?:imum)? (?:output|tokens)|completion tokens", re.IGNORECASE
)
_LIMIT_TOO_LARGE = re.compile(r"max\w*tokens\w*.{0,40}(?:too (?:large|high)|exceed)", re.IGNORECASE)
_MOST_OUTPUT = re.compile(
    r"(?:at most|limited to|limit of|<=|less than or equal to|lower than|(?<!\+ )\d > |\[\s*[01]\s*,"
    rf"|max(?:imum)? output[^.\d]{{0,30}})\s*`?\(?{_N}",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    rf"(?:context|token) (?:length|window|size|limit)s?(?: is| of|:)?(?: only)?\D{{0,3}}{_N}(?![\d,]* \+)"
    rf"|\d \+ \d+ > {_N}|limit is {_N}|must be <= {_N}",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    rf"{_N} (?:tokens )?(?:in the messages|in your prompt|from the input|of text input|(?:input|prompt) tokens)"
    rf"|prompt \({_N}|{_N} \+ \d+ >|given: {_N}",
    re.IGNORECASE,
)
_OUTPUT_COUNTED = re.compile(r"requested|current length|completion|output", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProposedRepair:
    """A change that the next try makes."""

    change: Abilities
    output_limit: int | None = None
    """Output tokens that fit this request."""


def find_repair(refusal: ProviderRefusal, asked: JsonObject, protocol: WireProtocol) -> ProposedRepair | None:
    """Return the repair that a refusal asks for; None: there is none."""
    if fitting := _find_room(refusal.message, asked):
        return fitting
    streams = bool(asked.get("stream"))
    if streams and _STREAM_REFUSED.search(refusal.message):
        return ProposedRepair(Abilities(settings={"stream": False}, dropped=frozenset(("stream_options",))))
    if not streams and _STREAM_WANTED.search(refusal.message):
        return ProposedRepair(Abilities(settings={"stream": True}))
    if (
        re.search(r"set reasoning_effort to .?none", refusal.message)
        and asked.get("reasoning_effort") != "none"
    ):
        return ProposedRepair(Abilities(settings={"reasoning_effort": "none"}))
    named = _named_paths(refusal, asked)
    if not named:
        return None
    if len(named) > 1 and re.search(r"\bboth\b|together|only one", refusal.message):
        named = named[1:]
    change = Abilities()
    for path in named:
        other = "max_tokens" if path == "max_completion_tokens" else "max_completion_tokens"
        if path in _LIMITS and protocol is WireProtocol.MESSAGES:
            continue  # Messages requires it
        if path in _LIMITS[:2] and protocol is WireProtocol.CHAT and other not in asked:
            change = change.learn(Abilities(renamed={path: other}))
        else:
            change = change.learn(Abilities(dropped=frozenset((path,))))
    return ProposedRepair(change) if change != Abilities() else None


def find_unsupported(refusal: ProviderRefusal, asked: JsonObject) -> str:
    """Return the key of the body that a refusal calls unsupported; empty: none."""
    sentence = _refusing_sentence(refusal)
    keys = [
        key for key in asked if key not in ("model", "messages", "input", "tools", "system", "instructions")
    ]
    named = [place for place in refusal.places if place in keys]
    quoted = [key for key in keys if _is_quoted(re.escape(key), sentence)]
    return next(iter((*named, *quoted)), "") if sentence else ""


def _is_quoted(key: str, sentence: str) -> bool:
    return re.search(rf"[`'\"]{key}[`'\"]|\b{key}$|^{key}:", sentence) is not None


def _named_paths(refusal: ProviderRefusal, asked: JsonObject) -> list[str]:
    """Return the repairable paths of the body that a refusal calls unsupported, in the order of the sentence."""
    sentence = _refusing_sentence(refusal)
    if not sentence:
        return []
    places = [path for path in _MENTIONS if path in refusal.places and _holds(asked, path)]
    if places:
        return places
    mentions = []
    for path, mention in _MENTIONS.items():
        if _holds(asked, path) and (
            match := re.search(rf"(?<![\w.])(?:{mention})(?!\w)", sentence, re.IGNORECASE)
        ):
            mentions.append((match.start(), path))
    return [path for _, path in sorted(mentions)]


def _refusing_sentence(refusal: ProviderRefusal) -> str:
    """Return the part of the message that refuses something, without advice; empty if nothing is refused."""
    for sentence in re.split(r"(?<=[.;!?])\s+|\n", refusal.message):
        refusing = _ADVICE.split(sentence)[0]
        if _REFUSED.search(refusing):
            return refusing
    sure = any(re.match(r"un(known|supported|recognized)_|extra_forbidden", code) for code in refusal.codes)
    return refusal.message if sure else ""


def _find_room(message: str, asked: JsonObject) -> ProposedRepair | None:
    """Return the output limit that fits, by the sizes that a refusal gives."""
    wished = next((asked[name] for name in _LIMITS if isinstance(asked.get(name), int)), None)
    if wished is None:
        return None
    context = _first_number(_CONTEXT, message)
    if context is None:
        most = _first_number(_MOST_OUTPUT, message) if _LIMIT_NAMED.search(message) else None
        if most is not None and SMALLEST_ROOM <= most < wished:
            return ProposedRepair(Abilities(max_output=most), most)
        if wished <= SMALLEST_ROOM or not _LIMIT_TOO_LARGE.search(message):
            return None
        return ProposedRepair(Abilities(max_output=wished // 2), wished // 2)
    stated = _first_number(_PROMPT, message)
    if stated is None and not _OUTPUT_COUNTED.search(message):
        return None  # the prompt alone is too long
    turns = [asked.get(name) for name in ("messages", "input", "system", "tools")]
    estimate = len(json.dumps(turns, default=str)) // 4
    prompt = stated if stated is not None and "at least" not in message else max(stated or 0, estimate)
    room = context - prompt - prompt // 50
    if room < SMALLEST_ROOM:
        return None
    return ProposedRepair(Abilities(context=context), room if room < wished else wished // 2)


def _first_number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(group for group in match.groups() if group).replace(",", "")) if match else None


def _holds(asked: JsonObject, path: str) -> bool:
    key, _, rest = path.partition(".")
    value = asked.get(key)
    return (isinstance(value, Mapping) and rest in value) if rest else key in asked

"""Which parameter of a request a refusal blames, and what of the request is changed for it.

Blamed is only what stands in the body as it was sent: a change that was made already is never proposed again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dgm.messages import JsonObject, WireProtocol
from dgm.models.abilities import Change, is_forced
from dgm.models.refusals import Place, Refusal, place_of
from dgm.models.sizes import OUTPUT_NAMES


class Fate(StrEnum):
    """What a blamed parameter means."""

    CHANGE = "change"
    """The model does not take it: asked again without."""
    OWN = "own"
    """Its value is wrong for every model: the agent's own."""
    UNABLE = "unable"
    """The model does not take it, and an answer without it would be another."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A parameter of the request that a refusal names."""

    path: str
    fate: Fate
    change: Change | None = None


_STRUCTURE = frozenset(
    ("model", "messages", "input", "system", "instructions", "tools", "functions", "function_call", "prompt",
     "previous_response_id", "conversation")
)  # fmt: skip
_ANSWER = frozenset(
    ("response_format", "text.format", "output_config.format", "output_format", "n", "modalities", "audio")
)
"""Left out, these would change what an answer is."""
_PARTS_OF_TURNS = frozenset(
    ("role", "content", "type", "tool_call_id", "call_id", "tool_calls", "output", "arguments", "text", "id", "input",
     "tool_use_id", "source", "image_url", "encrypted_content", "signature", "thinking", "data", "summary")
)  # fmt: skip
_PARTS_OF_TOOLS = frozenset(
    ("name", "description", "parameters", "input_schema", "type", "function", "format")
)
_SCHEMA_NOTES = frozenset(
    ("$schema", "additionalProperties", "title", "default", "examples", "$id", "$comment", "propertyNames", "format",
     "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "strict", "deprecated", "readOnly",
     "minItems", "maxItems", "uniqueItems", "multipleOf")
)  # fmt: skip
"""Keywords of a schema without which a model still knows what to write."""
_INNER = {"effort", "verbosity", "budget_tokens", "include_usage", "include_obfuscation", "summary", "format",
          "disable_parallel_tool_use", "generate_summary", "display"}  # fmt: skip
_COMMON_WORDS = frozenset(
    ("n", "user", "stop", "store", "include", "text", "reasoning", "thinking", "metadata", "name", "status", "refusal",
     "strict", "seed", "audio", "truncation", "think", "format", "summary", "effort", "models", "plugins", "provider")
)  # fmt: skip
_PHRASES = {
    "thinking": r"(?:support|extended|adaptive) thinking|thinking\.(?:type|adaptive|enabled|budget_tokens)",
    "think": r"support thinking",
    "reasoning_effort": r"support thinking|reasoning[ .]effort|thinking level",
    "reasoning": r"support thinking|reasoning[ _]effort|support reasoning",
    "reasoning.effort": r"reasoning[ _]effort|support thinking|thinking level",
    "enable_thinking": r"support thinking|enable.thinking",
    "stream": r"(?:support|support for|allow) stream(?:ing|ed)?|streaming",
    "include": r"encrypted content",
    "response_format": r"structured outputs?|json[ _](?:schema|mode|object)|guided decoding",
    "text.format": r"structured outputs?|json[ _](?:schema|mode|object)|text\.format|response_format",
    "output_config.format": r"structured outputs?|json[ _]schema|output_format",
    "logprobs": r"log ?prob(?:abilitie)?s",
    "stop": r"stop (?:sequences?|words?)",
    "tool_choice": r"tool.?choice|forced? tool use|forced function calling",
    "n": r"multiple (?:choices|completions)|\bn ?[>=]+ ?\d|more than (?:one|1) (?:choice|completion)",
    "stream_options": r"stream options|include_usage",
    "prediction": r"predicted outputs?",
}
_STRONG = re.compile(
    r"unsupported|(?:not|n[o'’]t|cannot be|never) (?:\w+ )?(?:be )?(?:support|permit|allow|accept|recogni[sz]|available|enabled"
    r"|implement|compatible|used|use\b|set\b|specif|combin|valid param|valid arg|a valid|yet|exist)|isn[’']t support"
    r"|unknown|unrecogni[sz]ed|unexpected|extra (?:input|field)|extraneous|extra_forbidden|additional propert"
    r"|only (?:the )?(?:default|one|supports?|\S+ (?:is|are) (?:allowed|supported))|deprecated|no longer|cannot both|can'?t"
    r"|cannot find field|incompatible|removed|no endpoints found|disabled|reject|do(?:es)? not work|or unset|must be (?:null"
    r"|unset|omitted|removed|set to)|may only be|is fixed|can only be"
    r"|不支持|不允许|未知|无效|参数错误|非法|不可用|不被支持",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"invalid|must|should|expected|only|wrong|incorrect|out of range|error|必须|范围|应", re.IGNORECASE
)
_SURE_WORDS = re.compile(
    r"unsupported_(?:parameter|value|param\w*)|unknown_(?:parameter|field|argument)|unrecognized_\w+|extra_forbidden"
    r"|UnsupportedParamsError|wrong_api_format|unsupported_\w+",
    re.IGNORECASE,
)
_BOUNDS = re.compile(
    r"between\s+\S+\s+and|range|(?:less|greater|smaller|larger|lower|higher|bigger) than|at (?:least|most)|(?:above|below) (?:the )?m"
    r"|[<>]=?\s*-?\d|≤|≥|m(?:ax|in)imum|non-?negative|positive|[\[(]\s*-?\d[\d.]*\s*,|too (?:large|small|high|low)|exceeds",
    re.IGNORECASE,
)
_ONE_VALUE = re.compile(
    r"only (?:the )?default|only \S+ (?:is|are) (?:allowed|supported)|only supports? (?:the default|\d|temperature ?=)|may only be"
    r"|or unset|omit|is fixed|deprecated|unsupported (?:parameter|value)|must be (?:exactly )?(?:set to |equal to )?1(?:\.0)?\b(?! and)",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"invalid type|should be a valid|not of type|must be (?:an? )?(?:number|string|integer|bool\w*|object|array|list)"
    r"|expected (?:an? )?(?:number|string|integer|bool\w*|object|array|decimal|float)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"(?:array|string|list|value) (?:is )?too long|maximum length|too many \w+", re.IGNORECASE
)
_OWN_SCHEMA = re.compile(
    r"invalid schema|schema.{0,60}(?:must|required to be|missing)|must contain the word", re.IGNORECASE
)
_TOGETHER = re.compile(
    r"\bboth\b|together|same time|mutually|use only one|conflict|either|simultaneous", re.IGNORECASE
)
_MANY = re.compile(r"(?:parameters|params|arguments|fields|properties|inputs|keys)\b.*,", re.IGNORECASE)
_ADVICE = re.compile(
    r"expected (?:one of|only)|(?<!un)(?:supported|allowed|permitted|available) (?:param|arg|field|propert|value|key|option)"
    r"|(?<!in)valid (?:param|arg|field|propert|value|key|option)|did you mean|\bunless\b|\binstead\b|, (?:please )?use |to use ",
    re.IGNORECASE,
)
"""Where a sentence goes on to say what would be taken."""
_SENTENCES = re.compile(r"(?<=[.;!?])\s+|(?<=[。；！])|\n|,?\s*(?=#[/:])|(?<=permitted): ")
_BEGUN_BY_PLACE = re.compile(r"(?:^|[;\n] ?)([a-z]\w*(?:\.[\w$]+|\[\d+\])+): ")
"""A validator's sentence that begins with the place: ``tools.0.custom.strict: Extra inputs …``."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_KNOWN_VALUES = {
    "reasoning_effort": EFFORTS,
    "reasoning.effort": EFFORTS,
    "output_config.effort": EFFORTS,
    "verbosity": EFFORTS,
    "text.verbosity": EFFORTS,
}


def find_blame(refusal: Refusal, asked: JsonObject, protocol: WireProtocol) -> Blame | None:
    """Return the parameter that a refusal blames; None where it names none that stands in the body."""
    paths = list(_paths(refusal, asked))
    if not paths:
        return None
    first = paths[0]
    if first in _ANSWER:
        return Blame(first, Fate.OWN if _OWN_SCHEMA.search(refusal.message) else Fate.UNABLE)
    value = _value(asked, first)
    if first in _KNOWN_VALUES and isinstance(value, str) and value not in _KNOWN_VALUES[first]:
        return Blame(first, Fate.OWN)
    if _TOO_LONG.search(refusal.message):
        return Blame(first, Fate.OWN)
    if _TYPE.search(refusal.message) and not _ONE_VALUE.search(refusal.message) and first != "tool_choice":
        return Blame(first, Fate.OWN)
    if _is_number(value) and _BOUNDS.search(refusal.message) and not _ONE_VALUE.search(refusal.message):
        # The ends of the usual ranges are what everybody sends: a server that refuses them lacks an ability.
        fate = Fate.CHANGE if value in (0, 1, -1) and first not in OUTPUT_NAMES else Fate.OWN
        return Blame(first, fate, Change(dropped=frozenset((first,))) if fate is Fate.CHANGE else None)
    if len(paths) > 1 and _TOGETHER.search(refusal.message):
        paths = ["max_tokens"] if "max_tokens" in paths and "max_completion_tokens" in paths else [paths[1]]
    change = Change()
    for path in paths:
        one = _change(path, refusal, asked, protocol)
        if one is None:
            return Blame(path, Fate.UNABLE)
        change = change.learn(one)
    return Blame(paths[0], Fate.CHANGE, change)


def _paths(refusal: Refusal, asked: JsonObject) -> Iterator[str]:
    """Yield what is blamed, the surest first: fields that name it, then the sentences of the message."""
    seen: set[str] = set()
    refused = _STRONG.search(refusal.message) or _WEAK.search(refusal.message)
    if refused or any(_SURE_WORDS.fullmatch(word) for word in refusal.words):
        begun = [place_of(said[1]) for said in _BEGUN_BY_PLACE.finditer(refusal.message)]
        for place in (*refusal.places, *begun):
            path = resolve(place, asked)
            if path and path not in seen:
                seen.add(path)
                yield path
    if seen:
        return
    names = dict(_names(asked))
    sentences = [one for one in _SENTENCES.split(refusal.message) if one.strip()]
    sure = [one for one in sentences if _STRONG.search(one)]
    weak = refusal.status < 500 and next((one for one in sentences if _WEAK.search(one)), "")
    for whole in sure or ([weak] if weak else []):
        sentence = _ADVICE.split(whole)[0]
        sentence = sentence if _STRONG.search(sentence) or _WEAK.search(sentence) else whole
        said = _mentioned(sentence, names)
        many = _MANY.search(sentence) or _TOGETHER.search(sentence)
        for path in said if many else said[:1]:
            if path not in seen:
                seen.add(path)
                yield path


def _mentioned(sentence: str, names: Mapping[str, str]) -> list[str]:
    found = []
    for path, pattern in names.items():
        if said := re.search(pattern, sentence, re.IGNORECASE):
            found.append((said.start(), -len(path), path))
    ordered = [path for *_, path in sorted(found)]
    return [path for path in ordered if not any(other.startswith(f"{path}.") for other in ordered)]


def says_refused(text: str) -> bool:
    """Return whether a text says that something is not taken."""
    return _STRONG.search(text) is not None


def resolve(place: Place, asked: JsonObject) -> str:
    """Return the path of a place that a validator names, without its own words for kinds; empty: not to be blamed."""
    node: Any = asked
    path = ""
    last: str | int = ""
    for part in place:
        if isinstance(node, Mapping) and part in node:
            node, last = node[part], part
            path += f".{part}" if path else str(part)
        elif isinstance(node, Sequence) and not isinstance(node, str) and isinstance(part, int):
            if part >= len(node):
                return ""
            node, path = node[part], f"{path}[]"
    if last == "cache_control":
        return "**.cache_control"
    key = path.partition("[")[0].partition(".")[0]
    if key in _STRUCTURE:
        return path if _is_extra(path, str(last), node) else ""
    return path


def _is_extra(path: str, last: str, value: object) -> bool:
    """Return whether a part of a turn or a tool can be left out."""
    if "[]" not in path:
        return False
    if path.startswith("tools"):
        return last not in _PARTS_OF_TOOLS and bool(re.fullmatch(r"tools\[\](\.function)?\.[\w$]+", path))
    return last not in _PARTS_OF_TURNS or (last == "tool_calls" and not value)


def _names(asked: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each path that may be blamed, and a pattern of how messages name it."""
    for key, value in asked.items():
        if key in _STRUCTURE:
            continue
        yield key, _pattern(key, key)
        if isinstance(value, Mapping):
            for inner in value:
                if inner in _INNER:
                    yield f"{key}.{inner}", _pattern(f"{key}.{inner}", inner, key)
    for key in ("messages", "input", "tools"):
        turns = asked.get(key)
        for turn in turns if isinstance(turns, Sequence) and not isinstance(turns, str) else ():
            yield from _names_within(turn, f"{key}[]") if isinstance(turn, Mapping) else ()
    if _holds(asked, "cache_control"):
        yield "**.cache_control", r"cache_control|prompt caching"
    for note in sorted(_SCHEMA_NOTES):
        if _holds(asked.get("tools"), note):
            unknown = rf"(?:unknown name|extraneous key|unsupported|property|keyword)[^.]{{0,20}}[\"'\[`]{re.escape(note)}[\"'\]`]"
            yield f"tools**.{note}", rf"{unknown}(?=.*(?:tool|function|schema|parameter))"


def _names_within(turn: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key in turn:
        if _is_extra(f"{path}.{key}", key, turn[key]) and key != "cache_control":
            yield f"{path}.{key}", rf"[`'\"\[.]{re.escape(key)}[`'\"\]]|\.{re.escape(key)}\b"
    function = turn.get("function")
    if path == "tools[]" and isinstance(function, Mapping):
        yield from _names_within(function, "tools[].function")


def _pattern(path: str, name: str, above: str = "") -> str:
    camel = re.sub(r"_(\w)", lambda one: one[1].upper(), name)
    spaced = name.replace("_", r"[ _\-]")
    known = "|".join({re.escape(name), re.escape(camel), spaced})
    if above:
        known = rf"{re.escape(above)}[._]{re.escape(name)}|{re.escape(above)}{name[:1].upper()}{re.escape(name[1:])}|{known}"
    edge = rf"(?<![\w.\-])(?:{known})(?![\w\-])"
    if name in _COMMON_WORDS:
        edge = (
            rf"[`'\"\[(](?:{known})[`'\"\])]|(?:param\w*|arg\w*|field|key|property|option|supplied|permitted|model|received)"
            rf"\s*:?\s+(?:{known})\b|\b(?:{known})\s+(?:param\w*|arg\w*|field|option|property)|\b(?:{known})\s*=|^(?:{known})\s*:"
        )
        edge = rf"{re.escape(above)}[._]{re.escape(name)}\b|{edge}" if above else edge
    return f"{edge}|{_PHRASES[path]}" if path in _PHRASES else edge


def _change(path: str, refusal: Refusal, asked: JsonObject, protocol: WireProtocol) -> Change | None:
    """Return what is changed for a blamed parameter; None: it cannot be left out."""
    drop = Change(dropped=frozenset((path,)))
    match path:
        case "stream":
            return Change(no_stream=True) if asked.get("stream") else None
        case "stream_options" | "stream_options.include_usage":
            return Change(dropped=frozenset(("stream_options",)))
        case "tool_choice":
            auto = {"type": "auto"} if protocol is WireProtocol.MESSAGES else "auto"
            return Change(replaced={path: auto}) if is_forced(asked.get(path)) else drop
        case "max_tokens" | "max_completion_tokens" | "max_output_tokens":
            return _other_limit(path, asked, protocol)
        case "reasoning_effort" | "reasoning.effort" | "output_config.effort":
            return _nearest_effort(path, refusal, asked) or drop
        case "reasoning" if re.search(r"effort", refusal.message) and "effort" in (
            asked.get("reasoning") or {}
        ):
            return Change(dropped=frozenset(("reasoning.effort",)))
        case "thinking" | "thinking.type" if re.search(
            r"use.{0,9}thinking\.type\.adaptive", refusal.message, re.I
        ):
            return Change(
                replaced={"thinking.type=enabled": "adaptive"}, dropped=frozenset(("thinking.budget_tokens",))
            )
        case "thinking.type":
            return Change(dropped=frozenset(("thinking",)))
        case "logprobs" | "top_logprobs":
            return Change(dropped=frozenset(("logprobs", "top_logprobs") if path == "logprobs" else (path,)))
    return None if path in _ANSWER else drop


def _other_limit(path: str, asked: JsonObject, protocol: WireProtocol) -> Change | None:
    if protocol is WireProtocol.MESSAGES:
        return None
    if protocol is WireProtocol.RESPONSES or path == "max_output_tokens":
        return Change(dropped=frozenset((path,)))
    other = "max_tokens" if path == "max_completion_tokens" else "max_completion_tokens"
    return Change(dropped=frozenset((path,))) if other in asked else Change(renamed={path: other})


def _nearest_effort(path: str, refusal: Refusal, asked: JsonObject) -> Change | None:
    """Return the nearest effort that the refusal lists as supported."""
    wished = _value(asked, path)
    _, listed, after = refusal.message.rpartition("upported values are") if "upported values are" in refusal.message else (
        re.search(r"^(.*?)(expected one of|must be one of|should be|one of:?|supported:|valid values)(.*)$", refusal.message, re.I | re.S)
        or ("", "", "", "")
    )[1:4]  # fmt: skip
    known = [effort for effort in EFFORTS if listed and re.search(rf"\b{effort}\b", after, re.IGNORECASE)]
    if wished not in EFFORTS or wished in known or not known:
        return None
    place = EFFORTS.index(wished)
    return Change(replaced={f"{path}={wished}": min(known, key=lambda one: abs(EFFORTS.index(one) - place))})


def _value(asked: JsonObject, path: str) -> Any:
    key, _, rest = path.partition(".")
    value = asked.get(key)
    return value.get(rest) if rest and isinstance(value, Mapping) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _holds(node: object, key: str) -> bool:
    if isinstance(node, Mapping):
        return key in node or any(_holds(one, key) for one in node.values())
    return isinstance(node, Sequence) and not isinstance(node, str) and any(_holds(one, key) for one in node)

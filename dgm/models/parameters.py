"""The parameter of a request that a refusal blames, and the resulting change.

Only parameters in the body as it was sent are blamed: a change that was made already is never proposed again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dgm.messages import JsonObject, WireProtocol
from dgm.models import parameter_words as words
from dgm.models.abilities import Change, is_forced
from dgm.models.refusals import Place, ProviderRefusal, parse_place
from dgm.models.sizes import OUTPUT_NAMES


class BlameMeaning(StrEnum):
    """The meaning of a blamed parameter."""

    CHANGE = "change"
    """The model does not accept it: retried without it."""
    OWN = "own"
    """Its value is wrong for every model: the agent's own fault."""
    UNABLE = "unable"
    """The model does not accept it, and leaving it out would change the answer."""


@dataclass(frozen=True, slots=True)
class BlamedParameter:
    """A parameter of the request that a refusal names."""

    path: str
    fate: BlameMeaning
    change: Change | None = None


def find_blame(refusal: ProviderRefusal, asked: JsonObject, protocol: WireProtocol) -> BlamedParameter | None:
    """Return the parameter that a refusal blames; None if it names none in the body."""
    paths = list(_iter_blamed_paths(refusal, asked))
    if not paths:
        return None
    first = paths[0]
    if first in words.ANSWER:
        return BlamedParameter(
            first, BlameMeaning.OWN if words.OWN_SCHEMA.search(refusal.message) else BlameMeaning.UNABLE
        )
    value = _value_at(asked, first)
    if first in words.KNOWN_VALUES and isinstance(value, str) and value not in words.KNOWN_VALUES[first]:
        return BlamedParameter(first, BlameMeaning.OWN)
    if words.TOO_LONG.search(refusal.message):
        return BlamedParameter(first, BlameMeaning.OWN)
    one_value = words.ONE_VALUE.search(refusal.message)
    if words.WRONG_TYPE.search(refusal.message) and not one_value and first != "tool_choice":
        return BlamedParameter(first, BlameMeaning.OWN)
    if _is_number(value) and words.BOUNDS.search(refusal.message) and not one_value:
        # Everybody sends the ends of the usual ranges: a server that refuses them lacks an ability.
        fate = BlameMeaning.CHANGE if value in (0, 1, -1) and first not in OUTPUT_NAMES else BlameMeaning.OWN
        return BlamedParameter(
            first, fate, Change(dropped=frozenset((first,))) if fate is BlameMeaning.CHANGE else None
        )
    if len(paths) > 1 and words.TOGETHER.search(refusal.message):
        paths = ["max_tokens"] if "max_tokens" in paths and "max_completion_tokens" in paths else [paths[1]]
    change = Change()
    for path in paths:
        one = _change_for(path, refusal, asked, protocol)
        if one is None:
            return BlamedParameter(path, BlameMeaning.UNABLE)
        change = change.learn(one)
    return BlamedParameter(paths[0], BlameMeaning.CHANGE, change)


def _iter_blamed_paths(refusal: ProviderRefusal, asked: JsonObject) -> Iterator[str]:
    """Yield the blamed paths, the most certain first: fields that name them, then the sentences of the message."""
    seen: set[str] = set()
    refused = words.REFUSED.search(refusal.message) or words.WRONG.search(refusal.message)
    if refused or any(words.SURE_WORDS.fullmatch(code) for code in refusal.words):
        begun = [parse_place(said[1]) for said in words.BEGUN_BY_PLACE.finditer(refusal.message)]
        for place in (*refusal.places, *begun):
            path = resolve_place(place, asked)
            if path and path not in seen:
                seen.add(path)
                yield path
    if seen:
        return
    names = dict(_iter_names(asked))
    sentences = [one for one in words.SENTENCES.split(refusal.message) if one.strip()]
    sure = [one for one in sentences if words.REFUSED.search(one)]
    weak = refusal.status < 500 and next((one for one in sentences if words.WRONG.search(one)), "")
    for whole in sure or ([weak] if weak else []):
        sentence = words.ADVICE.split(whole)[0]
        sentence = sentence if words.REFUSED.search(sentence) or words.WRONG.search(sentence) else whole
        said = _find_mentioned(sentence, names)
        many = words.MANY.search(sentence) or words.TOGETHER.search(sentence)
        for path in said if many else said[:1]:
            if path not in seen:
                seen.add(path)
                yield path


def _find_mentioned(sentence: str, names: Mapping[str, str]) -> list[str]:
    found = []
    for path, pattern in names.items():
        if said := re.search(pattern, sentence, re.IGNORECASE):
            found.append((said.start(), -len(path), path))
    ordered = [path for *_, path in sorted(found)]
    return [path for path in ordered if not any(other.startswith(f"{path}.") for other in ordered)]


def says_refused(text: str) -> bool:
    """Return whether a text refuses something."""
    return words.REFUSED.search(text) is not None


def resolve_place(place: Place, asked: JsonObject) -> str:
    """Return the path of a validator's place, without its words for kinds; empty: not to be blamed."""
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
    named = next((part for part in reversed(place) if isinstance(part, str)), "")
    if named != last and not words.KINDS.fullmatch(named):
        return ""
    if last == "cache_control":
        return "**.cache_control"
    key = path.partition("[")[0].partition(".")[0]
    if key in words.STRUCTURE:
        return path if _is_extra(path, str(last), node) else ""
    return path


def _is_extra(path: str, last: str, value: object) -> bool:
    """Return whether a part of a turn or a tool can be left out."""
    if "[]" not in path or path.endswith("[]"):
        return False
    if path.startswith("tools"):
        return last not in words.PARTS_OF_TOOLS and bool(
            re.fullmatch(r"tools\[\](\.function)?\.[\w$]+", path)
        )
    return last not in words.PARTS_OF_TURNS or (last == "tool_calls" and not value)


def _iter_names(asked: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each path that may be blamed, and a pattern of its name in messages."""
    for key, value in asked.items():
        if key in words.STRUCTURE:
            continue
        yield key, _name_pattern(key, key)
        if isinstance(value, Mapping):
            for inner in value:
                if inner in words.INNER:
                    yield f"{key}.{inner}", _name_pattern(f"{key}.{inner}", inner, key)
    for key in ("messages", "input", "tools"):
        turns = asked.get(key)
        for turn in turns if isinstance(turns, Sequence) and not isinstance(turns, str) else ():
            yield from _iter_names_within(turn, f"{key}[]") if isinstance(turn, Mapping) else ()
    if _has_key(asked, "cache_control"):
        yield "**.cache_control", r"cache_control|prompt caching"
    for note in sorted(words.SCHEMA_NOTES):
        if _has_key(asked.get("tools"), note):
            unknown = r"(?:unknown name|extraneous key|unsupported|property|keyword)[^.]{0,20}"
            quoted = rf"[\"'\[`]{re.escape(note)}[\"'\]`]"
            yield f"tools**.{note}", rf"{unknown}{quoted}(?=.*(?:tool|function|schema|parameter))"


def _iter_names_within(turn: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key in turn:
        if _is_extra(f"{path}.{key}", key, turn[key]) and key != "cache_control":
            yield f"{path}.{key}", rf"[`'\"\[.]{re.escape(key)}[`'\"\]]|\.{re.escape(key)}\b"
    function = turn.get("function")
    if path == "tools[]" and isinstance(function, Mapping):
        yield from _iter_names_within(function, "tools[].function")


def _name_pattern(path: str, name: str, above: str = "") -> str:
    """Return a pattern of a parameter's name in messages: with underscores, with spaces, in camel case."""
    camel = re.sub(r"_(\w)", lambda one: one[1].upper(), name)
    spaced = name.replace("_", r"[ _\-]")
    known = "|".join({re.escape(name), re.escape(camel), spaced})
    if above:
        tail = rf"[._]{re.escape(name)}|{re.escape(name[:1].upper() + name[1:])}"
        known = rf"{re.escape(above)}(?:{tail})|{known}"
    found = rf"(?<![\w.\-])(?:{known})(?![\w\-])"
    if name in words.COMMON_WORDS:
        before = r"(?:param\w*|arg\w*|field|key|property|option|supplied|permitted|model|received)\s*:?\s+"
        after = r"\s+(?:param\w*|arg\w*|field|option|property)"
        found = rf"[`'\"\[(](?:{known})[`'\"\])]|{before}(?:{known})\b|\b(?:{known})(?:{after}|\s*=)|^(?:{known})\s*:"
        found = rf"{re.escape(above)}[._]{re.escape(name)}\b|{found}" if above else found
    return f"{found}|{words.PHRASES[path]}" if path in words.PHRASES else found


def _change_for(
    path: str, refusal: ProviderRefusal, asked: JsonObject, protocol: WireProtocol
) -> Change | None:
    """Return the change for a blamed parameter; None: it cannot be left out."""
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
        case "thinking" | "thinking.type" if words.ADAPTIVE.search(refusal.message):
            adaptive = {"thinking.type=enabled": "adaptive"}
            return Change(replaced=adaptive, dropped=frozenset(("thinking.budget_tokens",)))
        case "thinking.type":
            return Change(dropped=frozenset(("thinking",)))
        case "logprobs" | "top_logprobs":
            return Change(dropped=frozenset(("logprobs", "top_logprobs") if path == "logprobs" else (path,)))
    return None if path in words.ANSWER else drop


def _other_limit(path: str, asked: JsonObject, protocol: WireProtocol) -> Change | None:
    if protocol is WireProtocol.MESSAGES:
        return None
    if protocol is WireProtocol.RESPONSES or path == "max_output_tokens":
        return Change(dropped=frozenset((path,)))
    other = "max_tokens" if path == "max_completion_tokens" else "max_completion_tokens"
    return Change(dropped=frozenset((path,))) if other in asked else Change(renamed={path: other})


def _nearest_effort(path: str, refusal: ProviderRefusal, asked: JsonObject) -> Change | None:
    """Return the nearest effort that the refusal lists as supported."""
    wished = _value_at(asked, path)
    listed = words.LISTED_VALUES.search(refusal.message)
    after = refusal.message[listed.end() :] if listed else ""
    known = [effort for effort in words.EFFORTS if re.search(rf"\b{effort}\b", after, re.IGNORECASE)]
    if wished not in words.EFFORTS or wished in known or not known:
        return None
    place = words.EFFORTS.index(wished)
    nearest = min(known, key=lambda one: abs(words.EFFORTS.index(one) - place))
    return Change(replaced={f"{path}={wished}": nearest})


def _value_at(asked: JsonObject, path: str) -> object:
    key, _, rest = path.partition(".")
    value = asked.get(key)
    return value.get(rest) if rest and isinstance(value, Mapping) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_key(node: object, key: str) -> bool:
    if isinstance(node, Mapping):
        return key in node or any(_has_key(one, key) for one in node.values())
    return (
        isinstance(node, Sequence) and not isinstance(node, str) and any(_has_key(one, key) for one in node)
    )

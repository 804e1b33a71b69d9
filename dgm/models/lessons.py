"""Lessons of refusals beyond parameters: streams, roles, settings, headers, the form of content."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.messages import JsonObject, WireProtocol
from dgm.models.abilities import Change, is_text_parts
from dgm.models.parameters import says_refused
from dgm.models.refusals import ProviderRefusal

_BETA_KEYS = ("anthropic_beta", "betas")
_NOT_SENT_BACK = r"(?:reasoning_content|thinking).{0,80}(?:must be passed back|is missing in assistant)"
_SETTINGS: tuple[tuple[str, str, Any], ...] = (
    (r"set reasoning_effort to [`'\"]?none", "reasoning_effort", "none"),
    (r"enable_thinking.{0,30}(?:must be|必须|should be|needs to be).{0,30}\bfalse\b", "enable_thinking", False),
    (r"enable[ _]thinking can ?not be .{0,20}stream", "enable_thinking", False),
    (_NOT_SENT_BACK, "thinking", {"type": "disabled"}),
)  # fmt: skip
"""Pattern of a message, with the parameter and value that are sent from then on."""
_MUST_BE = re.compile(r"[`'\"]?\b(\w+)[`'\"]? must be (?:set to )?[`'\"]?(true|false)\b", re.IGNORECASE)
_ROLE = re.compile(r"\broles?\b|developer|system (?:message|prompt|instruction)s?", re.IGNORECASE)
_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s?.{0,40}(?:not|un)\W*(?:supported|enabled|allowed|available)"
    r"|(?:not|n[o'’]t) support.{0,20}\bsystem\b|(?:unsupported|invalid|unexpected|unknown).{0,30}role.{0,12}\bsystem\b"
    r"|(?:developer|system) instruction.{0,20}not enabled",
    re.IGNORECASE,
)
_OWN_IMAGE = re.compile(
    r"format|mime|media.?type|base64|decode|download|corrupt|too large|size|url is", re.IGNORECASE
)
_IMAGES = ("image", "image_url", "input_image")


def learn_no_stream(_: ProviderRefusal, asked: JsonObject) -> Change | None:
    """Return that the model does not stream, if a stream was requested."""
    return Change(no_stream=True) if asked.get("stream") is True else None


def learn_only_stream(_: ProviderRefusal, asked: JsonObject) -> Change | None:
    """Return that the model only streams, if none was requested."""
    return Change(only_stream=True) if asked.get("stream") is not True else None


def learn_setting(refusal: ProviderRefusal, asked: JsonObject) -> Change | None:
    """Return a value that the refusal demands, if it was not sent."""
    for pattern, key, value in _SETTINGS:
        if re.search(pattern, refusal.message, re.IGNORECASE) and asked.get(key) != value:
            return Change(settings={key: value})
    said = _MUST_BE.search(refusal.message)
    key, value = (said[1].lower(), said[2].lower() == "true") if said else ("", False)
    return Change(settings={key: value}) if key in asked and asked[key] is not value else None


def learn_no_beta(asked: JsonObject, sent: Mapping[str, str] | None) -> Change | None:
    """Return that beta flags are left out, if some were sent; ``sent`` None: the headers are not known."""
    keys = frozenset(key for key in _BETA_KEYS if key in asked)
    if keys or sent is None or any(name.lower() == "anthropic-beta" for name in sent):
        return Change(dropped=keys, dropped_headers=frozenset(("anthropic-beta",)))
    return None


def learn_role(refusal: ProviderRefusal, asked: JsonObject, protocol: WireProtocol) -> Change | None:
    """Return the replacement for a role that the model does not have."""
    used = {str(turn.get("role")) for turn in _iter_turns(asked)}
    if protocol is WireProtocol.MESSAGES or not _ROLE.search(refusal.message):
        return None
    named = re.search(r"developer", refusal.message, re.IGNORECASE)
    listed = re.search(r"['\"`\b]?system['\"`]?\s*(?:,|or|and|\|)", refusal.message)
    if (
        "developer" in used
        and (named or listed)
        and (says_refused(refusal.message) or _lists_roles(refusal.message))
    ):
        return Change(roles={"developer": "user" if _SYSTEM.search(refusal.message) else "system"})
    places = any(place and place[-1] == "role" for place in refusal.places)
    quoted = places and re.search(r"['\"`]system['\"`]", refusal.message) and says_refused(refusal.message)
    if "system" in used and (_SYSTEM.search(refusal.message) or quoted):
        other = protocol is WireProtocol.RESPONSES
        return Change(
            roles={"system": "developer" if other else "user", **({} if other else {"developer": "user"})}
        )
    return None


def learn_flat_content(asked: JsonObject, protocol: WireProtocol) -> Change | None:
    """Return that texts are sent as strings, if a turn's content was a list of only texts."""
    listed = [turn["content"] for turn in _iter_turns(asked) if isinstance(turn.get("content"), list)]
    if protocol is WireProtocol.CHAT and any(is_text_parts(content) for content in listed):
        return Change(flat_content=True)
    return None


def refuses_images(refusal: ProviderRefusal, asked: JsonObject) -> bool:
    """Return whether the model takes no images at all, and the request holds one."""
    if not says_refused(refusal.message) and not re.search(
        r"at most 0|text-only|only text", refusal.message, re.I
    ):
        return False
    return _holds_image(asked) and not _OWN_IMAGE.search(refusal.message)


def names_structure(refusal: ProviderRefusal) -> bool:
    """Return whether a field of the refusal names a place within the turns or the tools."""
    return any(
        place and place[0] in ("messages", "input", "tools", "system", "functions")
        for place in refusal.places
    )


def names_tool_kind(refusal: ProviderRefusal) -> bool:
    """Return whether a field of the refusal names the type of a tool."""
    return any(
        place[:1] == ("tools",) and place[-1] == "type" and len(place) <= 3 for place in refusal.places
    )


def _lists_roles(text: str) -> bool:
    return all(re.search(rf"\b{name}\b", text, re.IGNORECASE) for name in ("system", "user", "assistant"))


def _iter_turns(asked: JsonObject) -> Iterator[Mapping[str, Any]]:
    for name in ("messages", "input"):
        turns = asked.get(name)
        if isinstance(turns, Sequence) and not isinstance(turns, str):
            yield from (turn for turn in turns if isinstance(turn, Mapping))


def _holds_image(node: object) -> bool:
    if isinstance(node, Mapping):
        return node.get("type") in _IMAGES or any(_holds_image(one) for one in node.values())
    return isinstance(node, Sequence) and not isinstance(node, str) and any(_holds_image(one) for one in node)

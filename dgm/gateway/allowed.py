"""Check what an agent's request asks of a provider against one table for all protocols, ``allowed.toml``.

Refused is what runs at the provider or reaches out through it, what is stored there, and what costs more than the price
table says. Any other key that is not in the table is left out and noted: the provider cannot act on it. Whether values
are sound is for the provider to say; its refusal reaches the agent.

The readers of requests, ``translation`` too, name what they leave out while they read; the gateway notes it.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.domain import FindingKind
from dgm.messages import JsonObject, WireProtocol
from dgm.wires.messages import NO_THREADS
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


MAX_BODY_DEPTH = 64
"""Maximum nesting of a request: not every JSON library can write deeper values."""
MAX_CHOICES = 16
"""Maximum number of answers that one request may ask for."""
MAX_BETAS = 50
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
TIERS = ("auto", "default", "standard_only", "standard", "on_demand", "flex")
"""Service tiers that cost the table's price or less."""
REMOTE = ("mcp", "mcp_toolset", "connector")
"""Types of tools by which a provider calls addresses; a request with one is refused, whatever its other tools are."""
SCHEMAS = (
    *("response_format", "text", "output_config", "output_format", "functions"),
    *("guided_json", "structured_outputs", "structural_tag", "json_schema", "format"),
)
LINKS = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keys by which a schema refers to another schema; some servers fetch it."""
ENCRYPTED = "reasoning.encrypted_content"
VERSION, BETA = "anthropic-version", "anthropic-beta"
LONG_INPUT, THREADS = "context-1m", "message-threads"
DATED = re.compile(r"(?<=_)20\d\d_?\d\d_?\d\d$")
BETA_DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")
_SCHEME = re.compile(r"\s*(?!data:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_PLACES: Mapping[str, tuple[str, ...]] = {
    "caller": ("direct",),
    "environment": ("local",),
    "source": ("base64", "text", "content"),
}
"""Keys whose objects must be of one of these types: others name a place at the provider."""

TABLE: Mapping[str, Mapping[str, frozenset[str]]] = {
    section: {key: frozenset(names.split()) for key, names in rows.items()}
    for section, rows in tomllib.loads(Path(__file__).with_name("allowed.toml").read_text()).items()
}
_ADDRESSES = TABLE["addresses"]
_FETCHED, _STORED = tuple(_ADDRESSES["fetched"]), tuple(_ADDRESSES["stored"])


def _invert(rows: Mapping[str, Iterable[str]]) -> Mapping[str, str]:
    return {name: reason for reason, names in rows.items() for name in names}


REASONS = _invert(TABLE["refused"])
"""Map of refused key or type to the reason."""
BETA_REASONS = _invert(TABLE["refused_betas"])
_MISCONDUCT = {name: FindingKind(kind) for kind, names in TABLE["misconduct"].items() for name in names}
PROVIDER_SIDE, STORED, UNPRICED = REASONS["web_search"], REASONS["file_id"], REASONS["speed"]


class BadRequest(Exception):
    """The error for a request that breaks the protocol, or that asks for something not offered.

    Attributes:
        code: the protocol's error code.
        status: the HTTP status to answer with.
        own: whether the agent is at fault; as in ``RequestRefused``.
        kind: what the request shows against the agent; None if an honest client may send it.
    """

    def __init__(
        self, message: str, code: str = "invalid_request", status: int = 400, *, own: bool = True
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.own = own
        self.kind: FindingKind | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The names that pass in one protocol."""

    protocol: WireProtocol
    keys: frozenset[str]
    tools: frozenset[str]
    """Types of tools that the agent runs."""
    content: frozenset[str]
    """Types of items, content and calls."""
    turn: frozenset[str]
    """Keys of a turn; empty: any."""

    @property
    def turns(self) -> str:
        """The key of the conversation."""
        return "input" if self.protocol is WireProtocol.RESPONSES else "messages"


RULES: Mapping[WireProtocol, Rules] = {
    protocol: Rules(
        protocol,
        TABLE["keys"][protocol]
        | (frozenset() if protocol is WireProtocol.MESSAGES else TABLE["keys"]["servers"]),
        TABLE["tools"][protocol],
        TABLE["content"][protocol],
        TABLE["turns"].get(protocol, frozenset()),
    )
    for protocol in WireProtocol
}


def check(protocol: WireProtocol, body: dict[str, Any], *, counting: bool = False) -> None:
    """Reduce a request, in place, to what may pass.

    Args:
        protocol: the request's protocol.
        body: the request, as parsed.
        counting: whether the request is to count tokens only.

    Raises:
        BadRequest: it asks for something that is not offered; the message names the place and the reason.
    """
    rules = RULES[protocol]
    _check_depth(body)
    if protocol is WireProtocol.MESSAGES and body.get("thread") is not None:
        # The vendor's tool runner sends this unasked; when refused with this code, it goes on without it.
        raise BadRequest("thread is not offered here: send the whole conversation", NO_THREADS)
    _keep_keys(body, rules.keys - TABLE["keys"]["uncounted"] if counting else rules.keys)
    _check_settings(body, "")
    _check_values(body)
    _check_earlier_answer(body)
    turns = body.get(rules.turns)
    _check_turns(turns, rules)
    if body.get("tools") is not None:
        items = turns if isinstance(turns, list) else ()
        others = any(item.get("type") == "additional_tools" for item in items)
        _keep_tools(body["tools"], rules, "tools", others=others)
    for choice in _objects(body.get("tool_choice")):
        kind = choice.get("type")
        if isinstance(kind, str) and kind not in rules.tools and kind in REASONS:
            raise _refusal(f"tool_choice: {kind!r}", kind)
    for key in SCHEMAS:
        _check_links(body.get(key), key)
    _check_content(body.get("system"), rules, "system")
    for key in ("system", "prediction"):
        _check_addresses(body.get(key), key)


def prepare(protocol: WireProtocol, body: JsonObject) -> JsonObject:
    """Return a checked request in the form to send: nothing is stored, and a shell is always the agent's own.

    In Responses, reasoning that is not stored must travel with the agent, encrypted, so it is included. A model that
    cannot do so answers ``encrypted content is not supported``; the agent must then leave ``include`` out.
    """
    sent = dict(body)
    if protocol is WireProtocol.CHAT and sent.get("store") is not None:
        sent["store"] = False  # Compatible servers may not know the key, so it is not added.
    if protocol is WireProtocol.RESPONSES:
        sent["store"] = False
        include = sent.get("include") or []
        sent["include"] = include if ENCRYPTED in include else [*include, ENCRYPTED]
        if sent.get("tools"):
            sent["tools"] = [
                {**tool, "environment": {"type": "local"}}
                if tool.get("type") == "shell" and not tool.get("environment")
                else tool
                for tool in sent["tools"]
            ]
    return sent


def select_headers(
    headers: Mapping[str, str], protocol: WireProtocol, *, one_price: bool = True
) -> dict[str, str]:
    """Return the headers of an agent that are sent on, with lower-case names: Anthropic's version and betas.

    Args:
        headers: the agent's headers, with names in any case.
        protocol: the protocol of both agent and provider.
        one_price: whether the model has the same price for inputs of every length. Then the beta for long inputs is
            left out, because the provider refuses what is too long without it.

    Raises:
        BadRequest: a version or a beta is not offered; the message names it.
    """
    if protocol is not WireProtocol.MESSAGES:
        return {}
    lower = {name.lower(): value for name, value in headers.items()}
    sent: dict[str, str] = {}
    if version := lower.get(VERSION, "").strip():
        if version not in TABLE["versions"]["passed"]:
            raise BadRequest(
                f"the header {VERSION} must be {' or '.join(sorted(TABLE['versions']['passed']))}"
            )
        sent[VERSION] = version
    betas = list(dict.fromkeys(name for beta in lower.get(BETA, "").split(",") if (name := beta.strip())))
    if len(betas) > MAX_BETAS:
        raise BadRequest(f"the header {BETA} names {len(betas)} betas; at most {MAX_BETAS} are accepted")
    if betas := [beta for beta in betas if _beta_passes(beta, one_price)]:
        sent[BETA] = ",".join(betas)
    return sent


def _beta_passes(beta: str, one_price: bool) -> bool:
    name = BETA_DATE.sub("", beta)
    if name in TABLE["betas"]["passed"]:
        return True
    reason = BETA_REASONS.get(name)
    if reason is None or (name == LONG_INPUT and one_price):
        leave_out(f"the beta {beta[:60]!r}")
        return False
    code = NO_THREADS if name == THREADS else "unsupported_parameter"
    raise BadRequest(f"the beta {beta[:60]!r} is not offered here: {reason}", code)


def _keep_keys(record: dict[str, Any], passed: frozenset[str], place: str = "") -> None:
    """Delete the keys that are not in the table; a refused one must ask for nothing: null, false or an empty list."""
    for key in [key for key in record if key not in passed]:
        value = record.pop(key)
        if value is None or value is False or value == []:
            continue
        if key in REASONS:
            raise _refusal(_join(place, key), key)
        leave_out(_join(place, key))


def _check_settings(holder: JsonObject, place: str) -> None:
    """Check the objects of a request, or of a turn, that hold settings."""
    for key, names in TABLE["within"].items():
        if isinstance(settings := holder.get(key), dict):
            _keep_keys(settings, names, _join(place, key))
    reasoning = holder.get("reasoning")
    if isinstance(reasoning, dict) and reasoning.get("mode") not in (None, "standard"):
        raise _refusal(_join(place, "reasoning.mode"), reason=UNPRICED)
    management = holder.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    for at, edit in enumerate(edits if isinstance(edits, list) else ()):
        kind = edit.get("type") if isinstance(edit, dict) else None
        _check_kind(kind, TABLE["edits"]["passed"], f"context_management.edits[{at}]")


def _check_values(body: JsonObject) -> None:
    """Check the values that decide the price, name the model, or are read by the gateway itself."""
    for key, sound, must in _VALUES:
        if (value := body.get(key)) is not None and not sound(value):
            raise BadRequest(f"{key} must be {must}")
    for key, inner in (
        ("options", "num_predict"),
        ("options", "n_predict"),
        ("chat_template_kwargs", "chat_template"),
    ):
        if isinstance(holder := body.get(key), dict) and holder.get(inner) is not None:
            raise _refusal(f"{key}.{inner}", inner)
    include = body.get("include")
    for at, name in enumerate(include if isinstance(include, list) else ()):
        _check_kind(name, TABLE["include"]["passed"], f"include[{at}]", "unsupported_parameter")


def _is_whole(value: object, most: float = float("inf")) -> bool:
    return type(value) is int and 1 <= value <= most


_VALUES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("model", lambda value: isinstance(value, str), "a text"),
    ("stream", lambda value: isinstance(value, bool), "true or false"),
    ("stream_options", lambda value: isinstance(value, dict), "an object"),
    ("include", lambda value: isinstance(value, list), "a list"),
    *((key, _is_whole, "a whole number above 0") for key in LIMITS),
    ("n", lambda value: _is_whole(value, MAX_CHOICES), f"a whole number from 1 to {MAX_CHOICES}"),
    ("service_tier", TIERS.__contains__, f"one of {', '.join(TIERS)}: {UNPRICED}"),
    ("speed", lambda value: value == "standard", f'"standard" or left out: {UNPRICED}'),
    ("modalities", lambda value: value == ["text"], f'["text"] or left out: {REASONS["audio"]}'),
)


def _check_earlier_answer(body: JsonObject) -> None:
    """Refuse the id of an earlier answer; the gateway has resolved all that it knows."""
    diagnostics = body.get("diagnostics")
    for key, holder in (("previous_response_id", body), ("previous_message_id", diagnostics)):
        if isinstance(holder, dict) and (earlier := holder.get(key)) is not None:
            message = f"there is no earlier answer {str(earlier)[:80]!r} in this job"
            raise BadRequest(message, "previous_response_not_found")


def _check_turns(turns: Any, rules: Rules) -> None:  # noqa: ANN401  (what a stranger's JSON holds)
    if isinstance(turns, str) and rules.protocol is WireProtocol.RESPONSES:
        return
    if not isinstance(turns, list) or not turns:
        raise BadRequest(f"{rules.turns} must be a list that is not empty")
    for at, turn in enumerate(turns):
        place = f"{rules.turns}[{at}]"
        if not isinstance(turn, dict):
            raise BadRequest(f"{place} must be an object")
        match rules.protocol:
            case WireProtocol.CHAT if turn.get("role") == "assistant":
                if turn.get("audio") is not None:
                    raise _refusal(f"{place}.audio", "audio", "unsupported_content")
                _check_content(turn.get("tool_calls"), rules, f"{place}.tool_calls")
            case WireProtocol.RESPONSES:
                _check_item(turn, rules, place)
            case _:
                _keep_keys(turn, rules.turn, place)
        _check_settings(turn, place)
        for key in ("content", "output", "summary"):
            _check_content(turn.get(key), rules, f"{place}.{key}")
        _check_addresses(turn, place)
        if rules.protocol is WireProtocol.CHAT and turn.get("role") == "tool":
            _show_texts_only(turn)


def _check_item(item: JsonObject, rules: Rules, place: str) -> None:
    kind = item.get("type") or ("item_reference" if "id" in item and "role" not in item else "message")
    _check_kind(kind, rules.content, place)
    if kind == "additional_tools" or item.get("tools") is not None:
        _keep_tools(item.get("tools"), rules, f"{place}.tools")
    if kind == "compaction" and not item.get("encrypted_content"):
        raise BadRequest(f"{place}.encrypted_content is missing: {STORED}", "unsupported_content")


def _show_texts_only(turn: JsonObject) -> None:
    """Replace pictures in the result of a tool, which Chat cannot carry, by texts."""
    content = turn.get("content")
    if isinstance(content, list):
        content[:] = [
            part
            if part.get("type") in ("text", "refusal")
            else {"type": "text", "text": describe_media(part)}
            for part in content
        ]


def _check_content(value: Any, rules: Rules, place: str) -> None:  # noqa: ANN401
    """Check the types of content, at every depth; content without a type names nothing that a provider fetches."""
    for at, block in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(block, dict):
            if isinstance(value, list):
                raise BadRequest(f"{place}[{at}] must be an object")
            continue
        here = f"{place}[{at}]" if isinstance(value, list) else place
        if block.get("type") is not None:
            _check_kind(block["type"], rules.content, here)
        if isinstance(source := block.get("source"), dict):
            _check_content(source.get("content"), rules, f"{here}.source.content")
        for key in ("content", "tool_changes", "tool"):
            if isinstance(block.get(key), list | dict):
                _check_content(block[key], rules, f"{here}.{key}")
        if block.get("definition") is not None:
            _keep_tools([block["definition"]], rules, f"{here}.definition")


def _keep_tools(tools: Any, rules: Rules, place: str, *, others: bool = False) -> None:  # noqa: ANN401
    """Delete the tools that cannot be offered from a list.

    Args:
        tools: the list.
        rules: the rules of the protocol.
        place: the place of the list.
        others: whether the request offers tools elsewhere.

    Raises:
        BadRequest: a tool makes the provider call an address, or no tool of the request is left.
    """
    if not isinstance(tools, list):
        raise BadRequest(f"{place} must be a list")
    kinds = [str(tool.get("type"))[:60] if isinstance(tool, dict) else "" for tool in tools]
    # A search of the agent's own may load tools later; without the provider's search, all are offered from the start.
    deferred = rules.protocol is WireProtocol.MESSAGES and not any(
        "tool_search_tool" in kind for kind in kinds
    )
    kept: list[JsonObject] = []
    unknown: list[str] = []
    first: BadRequest | None = None
    for at, tool in enumerate(tools):
        try:
            _check_tool(tool, rules, f"{place}[{at}]", deferred)
            kept.append(tool)
        except BadRequest as refusal:
            if refusal.code != "unsupported_tool" or kinds[at] in REMOTE:
                raise
            first = first or refusal
            unknown.append(kinds[at])
    if first is not None:
        if not kept and not others:
            raise first
        tools[:] = kept
        for kind in unknown:
            leave_out(f"tools of the type {kind!r}")


def _check_tool(tool: Any, rules: Rules, place: str, deferred: bool) -> None:  # noqa: ANN401
    if not isinstance(tool, dict):
        raise BadRequest(f"{place} must be an object")
    kind = tool.get("type")
    if kind is None and rules.protocol is WireProtocol.MESSAGES:
        kind = "custom"
    _check_kind(kind, rules.tools, place, "unsupported_tool", "tools")
    for described in (tool, tool.get("function"), tool.get("custom")):
        if isinstance(described, dict):
            _check_callers(described, place, deferred)
    if kind == "namespace":
        _keep_tools(tool.get("tools"), _NAMESPACED, f"{place}.tools")
    _check_addresses(tool, place)
    _check_links(tool, place)


_NAMESPACED = Rules(
    WireProtocol.RESPONSES, frozenset(), frozenset(("function", "custom")), frozenset(), frozenset()
)


def _check_callers(tool: dict[str, Any], place: str, deferred: bool) -> None:
    callers = tool.get("allowed_callers")
    if callers not in (None, [], ["direct"]):
        if not isinstance(callers, list) or "direct" not in callers:
            raise BadRequest(
                f"{place}.allowed_callers must name 'direct': {PROVIDER_SIDE}", "unsupported_tool"
            )
        leave_out(f"{place}.allowed_callers")
        tool["allowed_callers"] = ["direct"]
    if not deferred and tool.get("defer_loading") not in (None, False):
        leave_out(f"{place}.defer_loading")
        del tool["defer_loading"]


def _check_kind(
    kind: object,
    passed: frozenset[str],
    place: str,
    code: str = "unsupported_content",
    noun: str = "content",
) -> None:
    """Raise ``BadRequest`` unless a type, or its name without a date, passes."""
    name = kind if isinstance(kind, str) else ""
    undated = DATED.sub("", name)
    if name in passed or undated in passed:
        return
    shown = repr(str(kind)[:60])
    if reason := REASONS.get(undated) or REASONS.get(name):
        known = undated if undated in REASONS else name
        raise _refusal(f"{place}: {shown}", known, code, reason=reason)
    raise BadRequest(f"{place}: {noun} of the type {shown} is not known here", code)


def _check_addresses(value: Any, place: str, *, quoted: bool = False, local: bool = False) -> None:  # noqa: ANN401
    """Raise ``BadRequest`` where a value names an address or stored data, at any depth and under any key.

    Skip the inputs of the agent's own tools. ``quoted`` is whether an earlier answer named the sources, where addresses
    are plain text; ``local`` is whether the value belongs to an environment of the agent's own.
    """
    if isinstance(value, list):
        for at, entry in enumerate(value):
            if isinstance(entry, dict | list):
                _check_addresses(entry, f"{place}[{at}]", quoted=quoted, local=local)
    if not isinstance(value, dict):
        return
    for key, entry in value.items():
        if (
            not entry
            or key in _ADDRESSES["opaque"]
            or (key in _ADDRESSES["texts"] and isinstance(entry, str))
        ):
            continue
        here, name = _join(place, key), key.replace("_", "").replace("-", "").lower()
        if name in _ADDRESSES["provided"]:
            raise _refusal(here, code="unsupported_content", reason=PROVIDER_SIDE)
        if name.endswith(_STORED) or (name in _ADDRESSES["held"] and not (local and name == "skills")):
            raise _refusal(here, code="unsupported_content", reason=STORED)
        if not quoted:
            _check_entry(entry, name, here, is_text=place.endswith("source") and value.get("type") == "text")
        _check_addresses(
            entry,
            here,
            quoted=quoted or key in ("annotations", "citations"),
            local=local or name == "environment",
        )


def _check_entry(entry: Any, name: str, place: str, *, is_text: bool) -> None:  # noqa: ANN401
    """Check one value by the name of its key, without ``_`` and ``-``."""
    texts = [text for text in (entry if isinstance(entry, list) else [entry]) if isinstance(text, str)]
    if name.endswith(_FETCHED) and any(text[:5].lower() != "data:" for text in texts):
        raise BadRequest(
            f"{place} is an address or a name; send the data inline, as a data: URL", "unsupported_content"
        )
    if name in _ADDRESSES["encoded"] and not is_text and any(_SCHEME.match(text[:200]) for text in texts):
        raise BadRequest(f"{place} is an address; send the data inline", "unsupported_content")
    kinds = _PLACES.get(name)
    if kinds and isinstance(entry, dict) and (kind := entry.get("type")) not in kinds:
        message = f"{place} is of the type {str(kind)[:40]!r}; only {' or '.join(kinds)} is offered here"
        raise BadRequest(message, "unsupported_content")


def _check_links(value: Any, place: str) -> None:  # noqa: ANN401
    """Raise ``BadRequest`` where a schema refers to an address; some servers fetch it."""
    for record in _objects(value):
        for key in LINKS:
            if isinstance(link := record.get(key), str) and _SCHEME.match(link[:200]):
                raise BadRequest(f"{place}: {key} must stay within the schema", "unsupported_parameter")


def _check_depth(body: JsonObject) -> None:
    level: list[Any] = [body]
    for _ in range(MAX_BODY_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise BadRequest(f"the body is nested deeper than {MAX_BODY_DEPTH}")


def _objects(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield every object in a JSON value."""
    level = [value]
    while level:
        yield from (entry for entry in level if isinstance(entry, dict))
        level = [child for entry in level for child in _children(entry)]


def _children(value: Any) -> list[Any]:  # noqa: ANN401
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [entry for entry in entries if isinstance(entry, dict | list)]


def _join(place: str, key: str) -> str:
    """Return the place of a key, in printable characters."""
    shown = key if key.isidentifier() and key.isascii() and len(key) <= 60 else json.dumps(key[:60])[1:-1]
    return f"{place}.{shown}" if place else shown


def _refusal(
    place: str, name: str = "", code: str = "unsupported_parameter", *, reason: str = ""
) -> BadRequest:
    refusal = BadRequest(f"{place} is not offered here: {reason or REASONS[name]}", code)
    refusal.kind = _MISCONDUCT.get(name)
    return refusal

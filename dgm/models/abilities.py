"""The abilities of a model, as learned from its refusals: parameters left out, renamed or replaced, and sizes.

Values are immutable. ``apply`` never changes the body it is given. A path names a part of a body: ``reasoning.effort``;
``tools[].strict`` (in each element); ``**.cache_control`` (anywhere).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from dgm.messages import JsonObject, WireProtocol, WireRequest

_TURNS = {WireProtocol.CHAT: "messages", WireProtocol.RESPONSES: "input", WireProtocol.MESSAGES: "messages"}
FORM_PATHS = {
    WireProtocol.CHAT: "response_format",
    WireProtocol.RESPONSES: "text.format",
    WireProtocol.MESSAGES: "output_config.format",
}
"""Places of the form of the answer."""
_NAMES_OF_OTHERS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "arguments", "input")
)
"""Objects whose keys are names that an agent chose: nothing is left out there."""
FORCED = frozenset(("required", "any", "tool", "function", "custom", "allowed_tools"))
"""Kinds of ``tool_choice`` that force a call."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """The known abilities of one model. When used as a ``Change``: the additions from one refusal."""

    dropped: frozenset[str] = frozenset()
    """Paths that are left out."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Map of body key to the key that is sent in its place."""
    replaced: Mapping[str, Any] = field(default_factory=dict)
    """Map of ``path=value`` to the value that is sent in its place; ``tool_choice`` alone: replaces a forced call."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Keys that are always sent, and their values."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Map of turn role to the role that is sent in its place."""
    dropped_headers: frozenset[str] = frozenset()
    flat_content: bool = False
    """Whether texts are sent as strings, not as lists of parts."""
    no_stream: bool = False
    only_stream: bool = False
    context: int | None = None
    """Tokens of prompt and output together."""
    max_output: int | None = None
    tools: bool = True
    forms: bool = True
    """It takes a form of the answer; where it does not, only dgm's own wish is left out."""

    def apply(self, body: JsonObject, protocol: WireProtocol) -> JsonObject:
        """Return the body as this model accepts it; the same object if nothing has to change.

        The output limit is not clamped here: see ``room``.
        """
        new = body
        for old, name in self.renamed.items():
            if old in new and (value := new[old]) is not None:
                new = {key: one for key, one in new.items() if key != old}
                new.setdefault(name, value)
        for path, value in self.replaced.items():
            new = _replace_value(new, path, value)
        if any(key not in new or new[key] != value for key, value in self.settings.items()):
            new = {**new, **self.settings}
        if self.no_stream and "stream" in new:
            new = {key: one for key, one in new.items() if key not in ("stream", "stream_options")}
        elif self.only_stream and new.get("stream") is not True:
            new = {**new, "stream": True}
        for path in sorted(self.dropped):
            new = cast("JsonObject", drop_path(new, _split_path(path)))
        turns = new.get(_TURNS[protocol])
        if (self.roles or self.flat_content) and isinstance(turns, Sequence) and not isinstance(turns, str):
            new = {**new, _TURNS[protocol]: self._turns(turns)}
        return new

    def drop_form(self, request: WireRequest) -> JsonObject:
        """Return the request's body, without dgm's own wish for a form of the answer where the model takes none."""
        if self.forms or not request.form_optional:
            return request.body
        return cast("JsonObject", drop_path(request.body, _split_path(FORM_PATHS[request.protocol])))

    def apply_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers that this model accepts."""
        return {name: value for name, value in headers.items() if name.lower() not in self.dropped_headers}

    def learn(self, change: "Abilities") -> "Abilities":
        """Return these abilities with a change; equal to ``self`` if the change teaches nothing new."""
        dropped, renamed = set(self.dropped | change.dropped), dict(self.renamed)
        for old, name in change.renamed.items():
            if renamed.get(name) == old or name in dropped:
                renamed.pop(name, None)
                dropped |= {old, name}
            else:
                renamed[old] = name
        return replace(
            self,
            dropped=frozenset(dropped),
            renamed=renamed,
            replaced={**self.replaced, **change.replaced},
            settings={**self.settings, **change.settings},
            roles={**{old: change.roles.get(new, new) for old, new in self.roles.items()}, **change.roles},
            dropped_headers=self.dropped_headers | change.dropped_headers,
            flat_content=self.flat_content or change.flat_content,
            no_stream=(self.no_stream or change.no_stream) and not change.only_stream,
            only_stream=self.only_stream or change.only_stream,
            context=_min_known(self.context, change.context),
            max_output=_min_known(self.max_output, change.max_output),
            tools=self.tools and change.tools,
            forms=self.forms and change.forms,
        )

    def room(self, input_tokens_bound: int) -> int | None:
        """Return the largest output limit for a prompt within this bound of tokens; None: no bound is known.

        The result is at least 1: only the provider decides whether a prompt alone is too long.
        """
        left = None if self.context is None else max(self.context - input_tokens_bound, 1)
        return _min_known(left, self.max_output)

    def describe(self) -> str:
        """Return a short description for people; empty if the model accepts everything."""
        said = []
        if self.dropped or self.dropped_headers:
            names = [path.removeprefix("**.").replace("**", "") for path in sorted(self.dropped)]
            said.append(f"leaves out {', '.join([*names, *sorted(self.dropped_headers)])}")
        said += [f"sends {new} in place of {old}" for old, new in sorted(self.renamed.items())]
        said += [_describe_replacement(path, value) for path, value in sorted(self.replaced.items())]
        said += [f"sends {key} {_short_text(value)}" for key, value in sorted(self.settings.items())]
        said += [f"sends role {new} in place of {old}" for old, new in sorted(self.roles.items())]
        said += ["sends texts as strings"] if self.flat_content else []
        said += ["does not stream"] if self.no_stream else ["always streams"] if self.only_stream else []
        said += ["takes no tools"] if not self.tools else []
        said += ["takes no form of the answer"] if not self.forms else []
        said += [f"context {self.context:,} tokens"] if self.context is not None else []
        said += [f"output {self.max_output:,} tokens"] if self.max_output is not None else []
        return "; ".join(said)

    def as_record(self) -> dict[str, Any]:
        """Return JSON that ``from_record`` reads; it holds only deviations from a model that accepts everything."""
        record: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value != getattr(_NOTHING_KNOWN, each.name):
                record[each.name] = sorted(value) if isinstance(value, frozenset) else value
        return record

    @classmethod
    def from_record(cls, record: JsonObject) -> "Abilities":
        """Return the abilities in a record of ``as_record``; unknown keys are skipped."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in record.items() if name in known}
        for name in ("dropped", "dropped_headers"):
            values[name] = frozenset(values.get(name, ()))
        return cls(**values)

    def _turns(self, turns: Sequence[Any]) -> list[Any]:
        new: list[Any] = []
        merge = False
        for turn in turns:
            if not isinstance(turn, Mapping):
                new.append(turn)
                continue
            role = self.roles.get(str(turn.get("role")), "")
            one = {**turn, "role": role} if role else dict(turn)
            if self.flat_content and is_text_parts(one.get("content")):
                one["content"] = "\n".join(str(part.get("text", "")) for part in one["content"])
            if merge and one.get("role") == "user" and _both_have_text(new[-1], one):
                one["content"] = f"{new.pop()['content']}\n\n{one['content']}"
            merge = role == "user"
            new.append(one)
        return new


Change = Abilities
"""The lesson of one refusal."""
_NOTHING_KNOWN = Abilities()


def is_text_parts(content: object) -> bool:
    """Return whether a turn's content is a list that holds only texts."""
    return (
        isinstance(content, Sequence)
        and not isinstance(content, str)
        and bool(content)
        and all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content)
    )


def drop_path(node: object, parts: Sequence[str]) -> object:
    """Return JSON without the part that a path leads to; the same object if there is none.

    An object that becomes empty is removed too.
    """
    part, rest = parts[0], parts[1:]
    if part == "**":
        return _change_everywhere(node, lambda one: drop_path(one, rest))
    if part == "[]":
        if not isinstance(node, Sequence) or isinstance(node, str):
            return node
        new = [drop_path(one, rest) for one in node]
        return new if any(one is not old for one, old in zip(new, node, strict=True)) else node
    if not isinstance(node, Mapping) or part not in node:
        return node
    if not rest:
        return {key: one for key, one in node.items() if key != part}
    inner = drop_path(node[part], rest)
    if inner is node[part]:
        return node
    if inner == {} and "[]" not in rest and "**" not in rest:
        return {key: one for key, one in node.items() if key != part}
    return {**node, part: inner}


def _change_everywhere(node: object, change: Callable[[object], object]) -> object:
    """Return JSON with a change made in each object, but not among names that an agent chose."""
    if isinstance(node, Mapping):
        changed = change(node)
        new: dict[str, object] = {}
        for key, one in changed.items() if isinstance(changed, Mapping) else ():
            if key in _NAMES_OF_OTHERS and isinstance(one, Mapping):
                new[key] = {name: _change_everywhere(inner, change) for name, inner in one.items()}
            else:
                new[key] = _change_everywhere(one, change)
        same = changed is node and all(new[key] is node[key] for key in new)
        return node if same else new
    if isinstance(node, Sequence) and not isinstance(node, str):
        listed = [_change_everywhere(one, change) for one in node]
        return listed if any(one is not old for one, old in zip(listed, node, strict=True)) else node
    return node


def is_forced(choice: object) -> bool:
    """Return whether a ``tool_choice`` forces a call."""
    return (choice.get("type") if isinstance(choice, Mapping) else choice) in FORCED


def _replace_value(body: JsonObject, path: str, value: object) -> JsonObject:
    """Return the body with another value at a path, if the expected value is there."""
    if path == "tool_choice":
        old = body.get(path)
        if not is_forced(old):
            return body
        if isinstance(value, Mapping) and isinstance(old, Mapping) and "disable_parallel_tool_use" in old:
            value = {**value, "disable_parallel_tool_use": old["disable_parallel_tool_use"]}
        return {**body, path: value}
    where, _, wanted = path.partition("=")
    key, _, rest = where.partition(".")
    inner = body.get(key)
    if not rest:
        return {**body, key: value} if inner == wanted else body
    if isinstance(inner, Mapping) and inner.get(rest) == wanted:
        return {**body, key: {**inner, rest: value}}
    return body


def _split_path(path: str) -> list[str]:
    return [part for part in re.split(r"\.|(\[\])|(\*\*)", path) if part]


def _both_have_text(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return isinstance(one.get("content"), str) and isinstance(other.get("content"), str)


def _describe_replacement(path: str, value: object) -> str:
    where, _, old = path.partition("=")
    return f"sends {where} {_short_text(value)} in place of {old or 'a forced call'}"


def _short_text(value: object) -> str:
    if isinstance(value, Mapping):
        return str(value.get("type", dict(value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _min_known(one: int | None, other: int | None) -> int | None:
    known = [size for size in (one, other) if size is not None]
    return min(known) if known else None

"""The requests that a model accepts: what is left out, renamed or set, by the settings and as learned from refusals.

Values are immutable. ``apply`` never changes the body it is given. A path names a part of a body: ``reasoning.effort``,
or ``messages[].name`` (in each element).
"""

import json
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from dgm.messages import JsonObject, WireProtocol, WireRequest

FORM_PATHS = {
    WireProtocol.CHAT: "response_format",
    WireProtocol.RESPONSES: "text.format",
    WireProtocol.MESSAGES: "output_config.format",
}
"""Places of the form of the answer."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """The known abilities of one model, or the addition from one refusal or from the settings."""

    dropped: frozenset[str] = frozenset()
    """Paths that are left out."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Map of body key to the key that is sent in its place."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Keys that are always sent, and their values."""
    context: int | None = None
    """Tokens of prompt and output together."""
    max_output: int | None = None
    tools: bool = True
    forms: bool = True
    """It takes a form of the answer; where it does not, only dgm's own wish is left out."""

    def apply(self, body: JsonObject) -> JsonObject:
        """Return the body as this model accepts it; the same object if nothing has to change.

        The output limit is not clamped here: see ``room``.
        """
        new = body
        for old, name in self.renamed.items():
            if old in new and (value := new[old]) is not None:
                new = {key: one for key, one in new.items() if key != old}
                new.setdefault(name, value)
        if any(key not in new or new[key] != value for key, value in self.settings.items()):
            new = {**new, **self.settings}
        for path in sorted(self.dropped):
            new = cast("JsonObject", drop_path(new, _split_path(path)))
        return new

    def drop_form(self, request: WireRequest) -> JsonObject:
        """Return the request's body, without dgm's own wish for a form of the answer where the model takes none."""
        if self.forms or not request.form_optional:
            return request.body
        return cast("JsonObject", drop_path(request.body, _split_path(FORM_PATHS[request.protocol])))

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
            settings={**self.settings, **change.settings},
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
        words = (
            self.dropped and f"leaves out {', '.join(sorted(self.dropped))}",
            *(f"sends {new} in place of {old}" for old, new in sorted(self.renamed.items())),
            *(f"sends {key} {json.dumps(value)}" for key, value in sorted(self.settings.items())),
            "" if self.tools else "takes no tools",
            "" if self.forms else "takes no form of the answer",
            self.context and f"context {self.context:,} tokens",
            self.max_output and f"output {self.max_output:,} tokens",
        )
        return "; ".join(str(word) for word in words if word)

    def as_settings(self, model: str) -> str:
        """Return the lines of a settings file that say the same from the start; empty if there is nothing to say."""
        lines = [f"drop = {json.dumps(sorted(self.dropped))}"] if self.dropped else []
        for name, table in (("rename", self.renamed), ("set", self.settings)):
            if table:
                pairs = ", ".join(f"{key} = {_as_toml(value)}" for key, value in sorted(table.items()))
                lines.append(f"{name} = {{{pairs}}}")
        return "\n".join([f'[models.requests."{model}"]', *lines]) if lines else ""

    def as_record(self) -> dict[str, Any]:
        """Return JSON that ``from_record`` reads; it holds only deviations from a model that accepts everything."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in values.items()
            if value != getattr(_NOTHING_KNOWN, name)
        }

    @classmethod
    def from_record(cls, record: JsonObject) -> "Abilities":
        """Return the abilities in a record of ``as_record``; unknown keys, of other versions, are skipped."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in record.items() if name in known}
        return cls(**{**values, "dropped": frozenset(values.get("dropped", ()))})


_NOTHING_KNOWN = Abilities()


def drop_path(node: object, parts: Sequence[str]) -> object:
    """Return JSON without the part that a path leads to; the same object if there is none.

    An object that becomes empty is removed too.
    """
    part, rest = parts[0], parts[1:]
    if part == "[]":
        if not isinstance(node, Sequence) or isinstance(node, str) or not rest:
            return node
        new = [drop_path(one, rest) for one in node]
        return node if all(map(operator.is_, new, node)) else new
    if not isinstance(node, Mapping) or part not in node:
        return node
    if not rest:
        return {key: one for key, one in node.items() if key != part}
    inner = drop_path(node[part], rest)
    if inner is node[part]:
        return node
    if inner == {} and "[]" not in rest:
        return {key: one for key, one in node.items() if key != part}
    return {**node, part: inner}


def _split_path(path: str) -> list[str]:
    return [part for part in re.split(r"\.|(\[\])", path) if part] or [path]


def _as_toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_as_toml(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def _min_known(one: int | None, other: int | None) -> int | None:
    return min((size for size in (one, other) if size is not None), default=None)

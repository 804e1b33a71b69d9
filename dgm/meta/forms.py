"""JSON schemas of answers, for models that have structured output (``dgm.messages.AnswerForm``).

A prompt says the same in words, and answers are read leniently, whatever the model was asked by.
"""

from collections.abc import Mapping
from typing import Any

from dgm.messages import AnswerForm

TEXT: Mapping[str, Any] = {"type": "string"}
FLAG: Mapping[str, Any] = {"type": "boolean"}


def make_form(name: str, fields: Mapping[str, Mapping[str, Any]]) -> AnswerForm:
    """Return the form of an answer that is one object with exactly these fields, in this order."""
    return AnswerForm(name, make_object(fields))


def make_object(fields: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def make_list(items: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a list, which may be empty."""
    return {"type": "array", "items": items}

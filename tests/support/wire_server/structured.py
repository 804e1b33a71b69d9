"""Answers that have to be JSON: how each wire asks for them, and whether the brain obeyed."""

import json
from typing import Any

from dgm.messages import Reply, Stop
from tests.support.wire_server import checks
from tests.support.wire_server.errors import BrainFault, Refused
from tests.support.wire_server.protocol import JsonObject


def chat(data: JsonObject) -> JsonObject | None:
    """The schema of Chat's ``response_format``; ``{}`` for any JSON object, ``None`` for text."""
    given = data.get("response_format")
    if given is None:
        return None
    form = checks.record(given, "response_format")
    if form.get("type") != "json_schema":
        return _plain(form, "response_format")
    return _openai(checks.record(form.get("json_schema"), "response_format.json_schema"), "response_format")


def responses(data: JsonObject) -> JsonObject | None:
    """The schema of Responses' ``text.format``."""
    given = (data.get("text") or {}).get("format")
    if given is None:
        return None
    form = checks.record(given, "text.format")
    return _openai(form, "text.format") if form.get("type") == "json_schema" else _plain(form, "text.format")


def messages(data: JsonObject) -> JsonObject | None:
    """The schema of Messages' ``output_config.format``."""
    given = (data.get("output_config") or {}).get("format")
    if given is None:
        return None
    form = checks.record(given, "output_config.format")
    if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        raise Refused(400, "output_config.format.schema: Field required")
    if set(form) - {"type", "schema"}:
        raise Refused(400, "output_config.format: Extra inputs are not permitted")
    for place, schema in _objects(form["schema"], "output_config.format.schema"):
        if schema.get("additionalProperties") is not False:
            message = "For 'object' type, 'additionalProperties' must be explicitly set to false"
            raise Refused(400, f"{place}: {message}")
    return dict(form["schema"])


def strict(schema: JsonObject, owner: str, place: str) -> None:
    """Refuses a schema that OpenAI's strict mode does not take."""
    for inner, one in _objects(schema, ""):
        start = f"Invalid schema for {owner}: In context=({inner}), "
        if one.get("additionalProperties") is not False:
            message = f"{start}'additionalProperties' is required to be supplied and to be false."
            raise Refused(400, message, "invalid_json_schema", place)
        missing = sorted(set(one.get("properties") or ()) - set(one.get("required") or ()))
        if missing:
            message = f"{start}'required' has to list every key in properties. Missing '{missing[0]}'."
            raise Refused(400, message, "invalid_json_schema", place)


def check(schema: JsonObject | None, reply: Reply) -> None:
    """Makes sure that the brain answers as it was asked to; a call of a tool may come in the answer's place.

    Raises:
        BrainFault: it does not.
    """
    if schema is None or reply.calls or reply.stop is not Stop.END:
        return
    try:
        value = json.loads(reply.text)
    except ValueError as error:
        raise BrainFault(f"JSON was asked for, not {reply.text[:60]!r}") from error
    missing = set(schema.get("required") or ()) - set(value if isinstance(value, dict) else ())
    if missing or not isinstance(value, dict):
        raise BrainFault(f"the answer lacks {sorted(missing)} of its schema: {reply.text[:60]!r}")


def _plain(form: JsonObject, place: str) -> JsonObject | None:
    if form.get("type") not in ("text", "json_object"):
        raise Refused(400, f"Invalid value: '{form.get('type')}'.", "invalid_value", f"{place}.type")
    return {} if form["type"] == "json_object" else None


def _openai(form: JsonObject, place: str) -> JsonObject:
    name = checks.text(form.get("name"), f"{place}.name")
    schema = checks.record(form.get("schema"), f"{place}.schema")
    if form.get("strict") is True:
        strict(schema, f"response_format '{name}'", place)
    return schema


def _objects(schema: Any, place: str) -> list[tuple[str, JsonObject]]:
    """Every object's schema inside of one, with its place."""
    if isinstance(schema, list):
        return [found for at, one in enumerate(schema) for found in _objects(one, f"{place}.{at}")]
    if not isinstance(schema, dict):
        return []
    own = [(place.removeprefix("."), schema)] if schema.get("type") == "object" else []
    return own + [found for key, one in schema.items() for found in _objects(one, f"{place}.{key}")]

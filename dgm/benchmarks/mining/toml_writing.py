"""TOML as suites have it: a key a line, a long list one value a line."""

import json
from collections.abc import Mapping


def toml_text(values: Mapping[str, object]) -> str:
    """Return texts, numbers and lists of them as TOML."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in values.items())


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) > 1:
        return "[\n" + "".join(f"    {_toml_value(one)},\n" for one in value) + "]"
    # JSON's texts, numbers and lists are TOML's, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

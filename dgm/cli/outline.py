"""The data that completion needs on all commands and settings, kept in the user's cache.

Importing every command takes seconds; reading the cache takes milliseconds. It is made anew when dgm changes.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dgm.paths import cache_folder

_PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = ("cli", "config", "policies", "meta", "models", "archive", "benchmarks", "simulation")
"""Packages whose changes may change the completions."""
Outline = Mapping[str, Any]


def read_outline() -> Outline:
    """Return the outline of this version of dgm; make it if the cache has none that fits."""
    try:
        file = cache_folder("completion") / f"{_digest_sources()}.json"
        return json.loads(file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except (OSError, ValueError):
        outline = make_outline()
        _write_cache(outline)
        return outline


def make_outline() -> Outline:
    """Return a new outline, made from the commands and the records themselves."""
    from importlib import import_module

    import click

    from dgm.cli.commands import COMMANDS

    commands = {}
    for name, command in COMMANDS.items():
        module, _, attribute = command.target.partition(":")
        target = getattr(import_module(module), attribute)
        if isinstance(target, click.Command):  # derived commands have a completion of their own
            commands[name] = {**_describe_command(target), "help": command.summary}
    return {
        "commands": commands,
        "settings": _describe_settings(),
        "names": _list_names(),
        "formats": _describe_formats(),
    }


def _digest_sources() -> str:
    """Return a digest of dgm's files and their times, which editors and installers change."""
    digest = hashlib.sha256(str(_PACKAGE).encode())
    for name in SOURCES:
        with os.scandir(_PACKAGE / name) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_file():
                    status = entry.stat()
                    digest.update(f"{name}/{entry.name} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()[:20]


def _write_cache(outline: Outline) -> None:
    """Write the outline into the cache in place of older ones; without a cache it is made again each time."""
    try:
        folder = cache_folder("completion")
        handle, written = tempfile.mkstemp(dir=folder, suffix=".new")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(outline, file)
        older = list(folder.glob("*.json"))
        Path(written).replace(folder / f"{_digest_sources()}.json")
        for file_ in older:
            file_.unlink(missing_ok=True)
    except OSError:
        return


def _describe_command(command: Any) -> dict[str, Any]:
    inner = getattr(command, "commands", None) or {}
    shown = {name: each for name, each in inner.items() if not each.hidden}
    return {
        "help": command.get_short_help_str(100),
        "params": [
            _describe_parameter(each) for each in command.params if not getattr(each, "hidden", False)
        ],
        "commands": {name: _describe_command(each) for name, each in shown.items()},
    }


def _describe_parameter(parameter: Any) -> dict[str, Any]:
    option = parameter.param_type_name == "option"
    kind = type(parameter.type).__name__
    path = "" if kind != "Path" else "dir" if not parameter.type.file_okay else "file"
    return {
        "option": option,
        "name": parameter.name,
        "decls": [*parameter.opts, *parameter.secondary_opts],
        "flag": option and parameter.is_flag,
        "many": parameter.nargs == -1 or parameter.multiple,
        "required": parameter.required,
        "metavar": parameter.metavar or "",
        "help": (getattr(parameter, "help", "") or "").partition("\n")[0],
        "choices": [str(choice) for choice in getattr(parameter.type, "choices", ())],
        "path": path,
    }


def _describe_settings() -> list[dict[str, Any]]:
    from dgm.config.listing import NAME, list_settings
    from dgm.config.settings import KINDS

    return [
        {
            "name": name.partition(NAME)[0] if NAME in name else name,
            "choices": list(row.choices),
            "help": row.meaning,
            "table": row.type == "table",
        }
        for row in list_settings()
        for name in (
            [row.name.replace(NAME, kind) for kind in KINDS] if "providers" in row.name else [row.name]
        )
    ]


def _describe_formats() -> dict[str, dict[str, Any]]:
    """Return what completes a benchmark's name, by its format."""
    from dgm.benchmarks.formats import all_formats

    return {
        each.name: {
            "meaning": each.meaning,
            "data_sets": list(each.data_sets),
            "is_folder": each.is_folder,
        }
        for each in all_formats()
    }


def _list_names() -> dict[str, list[str]]:
    """Return the built-in names by kind; plug-ins are looked up on request."""
    from dgm.archive.codec import KINDS
    from dgm.benchmarks.swebench_rows import subset_names
    from dgm.meta.registry import BUILTIN as OPERATORS
    from dgm.models.choose import AUTO
    from dgm.models.choose import BUILTIN as MODELS
    from dgm.models.pricing import Prices
    from dgm.policies.registry import PARTS, POLICIES
    from dgm.sandboxes import recipes
    from dgm.sandboxes.choose import BUILTIN as ENGINES
    from dgm.simulation.families import FAMILIES

    found: dict[str, Iterable[str]] = {
        "policies": POLICIES,
        "operators": OPERATORS,
        "models": [AUTO, *MODELS, *Prices.load().rows],
        "kinds": KINDS,
        "recipes": recipes.names(),
        "sandboxes": ["auto", *ENGINES],
        "subsets": subset_names(),
        "families": FAMILIES,
        **{group: builtin for group, builtin, _ in PARTS.values()},
    }
    return {kind: list(names) for kind, names in found.items()}

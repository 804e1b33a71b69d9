"""The file of a sweep as a person writes it, checked for its own keys; settings are left to ``sweep_plan``."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from dgm.config import Settings
from dgm.config.resolving import KeyPath, key_path, leaves, read_settings_file
from dgm.config.settings import Count, Positive, Section
from dgm.errors import UserError

TABLES = ("sweep", "base", "variant", "grid")
MOST_SEEDS = 1_000
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Names of runs, and so of sweeps and variants."""
NAME_IS_MADE_OF = "a name is made of letters, digits, '.', '_' and '-'"


def _read_seeds(value: object) -> object:
    """Read a list of seeds, how many (from 0), or ``FROM:TO`` without TO, as ``dgm simulate --seeds`` does.

    Raises:
        ValueError: it is none of these, has no seed, or has one twice.
    """
    expected = (
        "expected a list such as [1, 2, 3], a number of seeds, or 'FROM:TO' such as '1:4' for 1, 2 and 3"
    )
    match value:
        case bool():
            raise ValueError(expected)
        case int():
            seeds = list(range(min(value, MOST_SEEDS + 1)))
        case str() if re.fullmatch(r"\d{1,18}:\d{1,18}", value):
            first, last = map(int, value.split(":"))
            seeds = list(range(first, min(last, first + MOST_SEEDS + 1)))
        case list() if all(isinstance(seed, int) and not isinstance(seed, bool) for seed in value):
            seeds = value
        case _:
            raise ValueError(expected)
    if not seeds:
        raise ValueError(f"there is no seed in it; {expected}")
    if len(seeds) > MOST_SEEDS:
        raise ValueError(f"more than {MOST_SEEDS} seeds")
    if min(seeds) < 0:
        raise ValueError("a seed is a number from 0 on")
    if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
        raise ValueError(f"the seed {twice[0]} is there twice")
    return tuple(seeds)


class SweepSection(Section):
    """The table ``[sweep]``."""

    name: str | None = None
    """The beginning of each run's name; default: the file's name without its ending."""
    seeds: Annotated[tuple[int, ...], BeforeValidator(_read_seeds)]
    """Seeds with each of which every variant is run once."""
    at_once: Count = 1
    """Number of runs at once; each has ``workers`` steps at once of its own."""
    max_usd: Positive | None = None
    """Maximum USD for all runs together."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings under a name."""

    name: str
    """The variant's name; empty where the file has no variant and no grid."""
    layers: Sequence[tuple[str, Mapping[str, Any]]]
    """Settings with their source, for messages; later ones win."""


@dataclass(frozen=True, slots=True)
class SweepFile:
    """A sweep as given in its file."""

    file: Path
    name: str
    section: SweepSection
    variants: Sequence[Variant]

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file begin at."""
        return self.file.absolute().parent


def read_sweep(file: Path) -> SweepFile:
    """Read the file of a sweep; the settings in it are not checked yet.

    Raises:
        UserError: there is no such file, it is no TOML, or it has an error; names the first one.
    """
    tables = read_settings_file(file)
    _check_tables(file, tables)
    section = _read_section(file, tables.get("sweep", {}))
    name = file.stem if section.name is None else section.name
    if not NAME.fullmatch(name):
        raise UserError(f"{file}: the sweep's name {name!r}: {NAME_IS_MADE_OF}; set name in [sweep]")
    base = (f"{file}: [base]", tables.get("base", {}))
    variants = [
        Variant("-".join(filter(None, (named, point))), [base, *layers, *more])
        for named, layers in _read_variants(file, tables.get("variant"))
        for point, more in _read_grid(file, tables.get("grid", {}))
    ]
    _check_variants(file, variants)
    return SweepFile(file, name, section, variants)


def _check_tables(file: Path, tables: Mapping[str, Any]) -> None:
    for key, value in tables.items():
        if key not in TABLES:
            near = difflib.get_close_matches(key, TABLES, 1)
            hint = "settings of the runs stand in [base]" if key in Settings.model_fields else ""
            hint = hint or (f"did you mean [{near[0]}]?" if near else f"there are {', '.join(TABLES)}")
            raise UserError(f"{file}: unknown key '{key}' ({hint})")
        if key != "variant" and not isinstance(value, dict):
            raise UserError(f"{file}: {key} = {value!r}: expected a table, [{key}]")
    if "sweep" not in tables:
        raise UserError(f"{file}: there is no [sweep] table; it takes at least: seeds = [1, 2, 3]")


def _read_section(file: Path, table: Mapping[str, Any]) -> SweepSection:
    try:
        return SweepSection.model_validate(table)
    except ValidationError as error:
        # A misspelt name causes the error about a missing one.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        key = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(key, SweepSection.model_fields, 1)
            hint = "settings of the runs stand in [base]" if key in Settings.model_fields else ""
            hint = hint or (f"did you mean '{near[0]}'?" if near else "")
            said = f"unknown key '{key}'" + (f" ({hint})" if hint else "")
        elif first["type"] == "missing":
            said = f"{key} is missing; for example: {key} = [1, 2, 3]"
        else:
            words = first["msg"].removeprefix("Value error, ")
            said = f"{key} = {first['input']!r}: {words[0].lower()}{words[1:]}"
        raise UserError(f"{file}: [sweep] {said}") from error


def _read_variants(
    file: Path, tables: object
) -> Iterable[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]]:
    """Return name and settings of each ``[[variant]]``; one without a name where there is none."""
    if tables is None:
        return [("", [])]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{file}: variant: expected tables; write [[variant]] with two brackets before each")
    found = []
    for number, table in enumerate(tables, 1):
        name = table.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            said = f"name = {name!r}: {NAME_IS_MADE_OF}" if "name" in table else "has no name; give it one"
            raise UserError(f"{file}: [[variant]] number {number}: {said}")
        settings = {key: value for key, value in table.items() if key != "name"}
        found.append((name, [(f"{file}: variant '{name}'", settings)]))
    return found or [("", [])]


def _read_grid(
    file: Path, table: Mapping[str, Any]
) -> Iterable[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]]:
    """Return name and settings of each point of the grid; one without a name where there is none."""
    points: list[tuple[str, list[tuple[str, Mapping[str, Any]]]]] = [("", [])]
    for path, values in leaves(table):
        full = (*key_path(path[0]), *path[1:]) if len(path) == 1 else path
        key = ".".join(full)
        if not isinstance(values, list) or not values or any(isinstance(value, dict) for value in values):
            raise UserError(
                f"{file}: [grid] {key} = {values!r}: expected a list of values to try; "
                "what takes a table is set in a [[variant]]"
            )
        source = f"{file}: [grid]"
        points = [
            (
                "-".join(filter(None, (name, _point_name(full, value)))),
                [*layers, (source, _nest_value(full, value))],
            )
            for name, layers in points
            for value in values
        ]
    return points


def _point_name(path: KeyPath, value: object) -> str:
    """Return the name of a value: ``hgm`` for a policy's name, ``workers-2`` for a number."""
    text = "-".join(map(str, value)) if isinstance(value, list) else str(value)
    text = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "empty"
    named = isinstance(value, str) and path[-1] in ("name", "operator", "model", "benchmark")
    return text if named else f"{path[-1]}-{text}"


def _nest_value(path: KeyPath, value: object) -> Mapping[str, Any]:
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def _check_variants(file: Path, variants: Sequence[Variant]) -> None:
    names = [variant.name for variant in variants]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{file}: two variants are named '{twice}'; give each a name of its own")
    for variant in variants:
        for source, table in variant.layers:
            if "seed" in table:
                raise UserError(
                    f"{source} seed: each run's seed is one of seeds in [sweep]; leave it out here"
                )

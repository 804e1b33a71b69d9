"""The shape of ``run.json``, which may come from a stranger: types of what dgm reads, and a name for what it lacks.

The settings are validated completely where a run goes on (``dgm.config``). Looking at a run of another version needs
only the few values here; unknown keys are left alone.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from dgm.archive.event_fields import MOST, Name, Time
from dgm.errors import ArchiveCorrupt

Table = dict[str, Any]
_Number = Annotated[int, Field(ge=-MOST, le=MOST)]
_Id = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_.-]*$", max_length=100)]
"""It becomes a part of the names of folders and a label of containers."""


class RunKind(StrEnum):
    """The purpose of a run."""

    SEARCH = "search"
    HOLDOUT = "holdout"
    """The evaluation of a search's agents on its holdout tasks."""
    EVALUATION = "evaluation"
    """Agents, or the patches of a file, on the tasks of a benchmark."""
    REPLAY = "replay"
    """Evaluations of another run, repeated by another model."""
    SIMULATION = "simulation"


class _Weighted(BaseModel):
    model: Name
    weight: float = 1.0


class _Models(BaseModel):
    solve: Name | list[_Weighted] | None = None
    improve: Name | list[_Weighted] | None = None
    diagnose: Name | list[_Weighted] | None = None


class _Policy(BaseModel):
    name: Name = ""
    recommendation: Name | None = None
    alpha: float = 0.0


class _Settings(BaseModel):
    benchmark: str = ""
    model: Name = ""
    operator: Name = ""
    workers: _Number = 0
    seed: _Number = 0
    policy: _Policy = _Policy()
    budget: Table = {}
    limits: Table = {}
    gates: Table = {}
    models: _Models = _Models()


class _Config(BaseModel):
    id: _Id = ""
    name: Name = ""
    created: Time = 0.0
    sandbox: Name = ""
    settings: _Settings = _Settings()
    versions: dict[str, str | None] = {}
    objects: dict[str, dict[str, str]] = {}
    kind: RunKind = RunKind.SEARCH
    plan: Table = {}


class FrozenTable(dict[str, Any]):
    """A table of ``run.json``; a key that it lacks is named in a ``ArchiveCorrupt``."""

    def __init__(self, table: Mapping[str, Any], place: str) -> None:
        """Copy ``table`` and all tables in it; ``place`` is its place, for messages."""
        super().__init__(
            (key, FrozenTable(value, f"{place}.{key}") if isinstance(value, dict) else value)
            for key, value in table.items()
        )
        self._place = place

    def __missing__(self, key: str) -> Any:  # noqa: ANN401  (never returns)
        raise ArchiveCorrupt(f"{self._place} has no {key!r}; restore the run from a copy")


def check_config(config: Mapping[str, Any]) -> None:
    """Raise if a value of a configuration has a type that its key never has.

    Raises:
        ValueError: names the first such value.
    """
    check_shape(_Config, config)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise the same for settings alone."""
    check_shape(_Settings, settings)


def check_shape(shape: type[BaseModel], value: object) -> None:
    """Raise unless a value has a shape.

    Raises:
        ValueError: names the first value that has another type.
    """
    try:
        shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"not what dgm wrote: {key!r}: {first['msg']}") from error

"""The runs of a sweep: every variant with every seed, settings resolved as for any run, before any starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.archive.run import Run
from dgm.config import Settings, read_frozen
from dgm.config.resolving import leaves, resolve_layers
from dgm.config.toml_files import format_key, format_value
from dgm.errors import UserError
from dgm.experiments.sweep_file import NAME, SweepFile, Variant


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a sweep."""

    name: str
    variant: str
    settings: Settings

    @property
    def seed(self) -> int:
        """The random seed of the run's decisions."""
        return self.settings.seed

    def command(self) -> Sequence[str]:
        """Return the words behind ``dgm`` that begin the run."""
        given = self.settings.model_dump(mode="json", exclude_unset=True)
        words = [
            word
            for path, value in leaves(given)
            if value is not None and path != ("seed",)
            for word in ("--set", f"{format_key(path)}={format_value(value)}")
        ]
        return ["run", "--name", self.name, "--seed", str(self.seed), *words]


def plan_runs(sweep: SweepFile) -> Sequence[PlannedRun]:
    """Return the sweep's runs, all variants of the first seed first.

    Raises:
        UserError: the first setting that is unknown, does not fit, or cannot begin a run.
    """
    resolved = [(variant, _resolve_settings(sweep, variant)) for variant in sweep.variants]
    runs = [
        PlannedRun(
            _name_run(sweep, variant.name, seed), variant.name, settings.model_copy(update={"seed": seed})
        )
        for seed in sweep.section.seeds
        for variant, settings in resolved
    ]
    _check_money(sweep, runs)
    return runs


def settle_models(runs: Sequence[PlannedRun], settle: Callable[[Settings], Settings]) -> Sequence[PlannedRun]:
    """Return the runs with a model in place of ``auto``; each variant is settled once."""
    known: dict[str, Settings] = {}
    for run in runs:
        if run.variant not in known:
            known[run.variant] = settle(run.settings)
    return [replace(run, settings=known[run.variant].model_copy(update={"seed": run.seed})) for run in runs]


def check_unchanged(file: Path, planned: PlannedRun, run: Run) -> None:
    """Check that a run of this name was begun with the settings that the file gives it now.

    Raises:
        UserError: it was begun with others; names the first that differs.
    """
    recorded = read_frozen(run.config.get("settings", {}), str(run.folder / "run.json"))
    then = _flatten(recorded.model_dump(mode="json"))
    now = _flatten(planned.settings.model_dump(mode="json"))
    for key in {**now, **then}:
        if then.get(key) != now.get(key):
            raise UserError(
                f"{file}: {key} is {format_value(now.get(key))}, but run {run.name} was begun with "
                f"{format_value(then.get(key))}; put that back, or give the changed sweep another name"
            )


def _resolve_settings(sweep: SweepFile, variant: Variant) -> Settings:
    settings = resolve_layers(variant.layers, sweep.folder)
    try:
        assemble.check_settings(settings)
    except UserError as error:
        which = f": variant '{variant.name}'" if variant.name else ""
        raise UserError(f"{sweep.file}{which}: {error}") from error
    return settings


def _name_run(sweep: SweepFile, variant: str, seed: int) -> str:
    name = "-".join(filter(None, (sweep.name, variant, str(seed))))
    if not NAME.fullmatch(name):
        raise UserError(
            f"{sweep.file}: the run's name {name!r} has more than 100 characters; use shorter names"
        )
    return name


def _check_money(sweep: SweepFile, runs: Sequence[PlannedRun]) -> None:
    """Check that a limit for the whole sweep can be held: each run has one of its own, and the largest fits."""
    total = sweep.section.max_usd
    if total is None:
        return
    for run in runs:
        limit = run.settings.budget.usd
        if limit is None:
            raise UserError(
                f"{sweep.file}: [sweep] max_usd = {total:g}: run {run.name} has no limit of its own to count with; "
                "set budget.usd in [base]"
            )
        if limit > total:
            raise UserError(
                f"{sweep.file}: [sweep] max_usd = {total:g}: run {run.name} alone may cost {limit:g} USD (budget.usd)"
            )


def _flatten(table: Mapping[str, Any]) -> Mapping[str, Any]:
    return {".".join(path): value for path, value in leaves(table)}

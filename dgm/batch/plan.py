"""The runs of a batch, with their settings resolved before any of them starts."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.archive.run import Run
from dgm.config import Settings, read_frozen
from dgm.config.resolving import key_path, leaves, parse_value, resolve
from dgm.config.toml_files import NotToml, format_key, format_value, parse_toml
from dgm.errors import UserError

MAX_RUNS = 1_000
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
NAMED = ("name", "operator", "model", "benchmark")
"""Last parts of settings whose value alone names a variant: ``hgm``, but ``workers-2``."""
Seeds = str | Sequence[int]
"""``1:4`` for 1, 2 and 3; ``1,2,5``; or a list."""
Vary = Mapping[str, Sequence[Any]] | Sequence[str]
"""Setting → values to try; or texts ``KEY=A,B``, with values in TOML or plain text."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a batch."""

    name: str
    variant: str
    """Short name of its combination of varied settings; empty if nothing is varied."""
    settings: Settings

    def command(self) -> Sequence[str]:
        """Return the words after ``dgm`` that begin the run."""
        chosen = self.settings.model_dump(mode="json", exclude_unset=True)
        words = [
            word
            for path, value in leaves(chosen)
            if value is not None
            for word in ("--set", f"{format_key(path)}={format_value(value)}")
        ]
        return ["run", "--name", self.name, *words]

    def receiver_words(self) -> Sequence[str]:
        """Return the words that name the receivers of a session, for a new and for a resumed run.

        Raises:
            UserError: an address may hold a token; everyone on this machine can read the words of a program.
        """
        sinks, notify = self.settings.sinks, self.settings.notify
        for argument, addresses in (("sink", sinks.to), ("notify", notify.to)):
            if any(_may_hold_token(address, argument) for address in addresses):
                raise UserError(
                    "put the address into a variable for several runs: env:NAME", argument=argument
                )
        changed = {"sinks": sinks, "notify": notify}
        return [
            word
            for section, record in changed.items()
            for name, value in record.model_dump(mode="json", exclude_defaults=True).items()
            for word in ("--set", f"{section}.{name}={format_value(value)}")
        ]


def _may_hold_token(address: str, argument: str) -> bool:
    return not address.startswith("env:") and (argument == "notify" or "@" in address or "?" in address)


def plan_runs(
    name: str,
    sources: tuple[Path | None, Iterable[str] | Mapping[str, Any], Mapping[str, Any]],
    seeds: Seeds | None,
    vary: Vary,
    preset: str | None = None,
) -> Sequence[PlannedRun]:
    """Return the runs of a batch, all variants of the first seed first.

    Args:
        name: beginning of each run's name.
        sources: of the settings that all runs share, as ``resolve`` takes them.
        seeds: random seeds; None: the seed of the settings.
        vary: settings to vary; without any, the runs differ in their seeds only.
        preset: as ``resolve`` takes it.

    Raises:
        UserError: the first setting that is unknown, does not fit, or cannot begin a run.
    """
    file, settings, arguments = sources
    varied = {key: _check_values(key, values) for key, values in _parse_vary(vary).items()}
    numbers = [None] if seeds is None else parse_seeds(seeds)
    if len(numbers) * math.prod(map(len, varied.values())) > MAX_RUNS:
        raise UserError(f"more than {MAX_RUNS} runs", argument="vary")
    runs = []
    for seed, point in itertools.product(numbers, itertools.product(*varied.values())):
        changes = dict(zip(varied, point, strict=True))
        chosen = resolve(file, settings, {**arguments, "seed": seed, **changes}, preset)
        assemble.check_settings(chosen)
        variant = "-".join(_name_value(key, value) for key, value in changes.items())
        runs.append(PlannedRun(_join_name(name, variant, chosen.seed), variant, chosen))
    names = [run.name for run in runs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"two runs would be named {twice!r}", argument="vary")
    return runs


def parse_seeds(seeds: Seeds) -> Sequence[int]:
    """Return the seeds that a text or a list gives.

    Raises:
        UserError: there is none, one is below 0 or there twice, or the text is neither ``FROM:TO`` nor a list.
    """
    if isinstance(seeds, str):
        if bounds := re.fullmatch(r"(\d{1,18}):(\d{1,18})", seeds):
            first, last = int(bounds[1]), int(bounds[2])
            seeds = range(first, min(last, first + MAX_RUNS + 1))
        elif re.fullmatch(r"\d{1,18}(,\d{1,18})*", seeds):
            seeds = [int(number) for number in seeds.split(",")]
        else:
            raise UserError(f"{seeds!r}: expected 1:4 for 1, 2 and 3, or 1,2,5", argument="seeds")
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UserError("expected different numbers from 0 on", argument="seeds")
    return seeds


def settle_models(runs: Sequence[PlannedRun], settle: Callable[[Settings], Settings]) -> Sequence[PlannedRun]:
    """Return the runs with a model in place of ``auto``; each variant is settled once."""
    settled: dict[str, Settings] = {}
    for run in runs:
        if run.variant not in settled:
            settled[run.variant] = settle(run.settings)
    return [
        replace(run, settings=settled[run.variant].model_copy(update={"seed": run.settings.seed}))
        for run in runs
    ]


def check_existing(planned: PlannedRun, folder: Path) -> None:
    """Check that a run of this name, if there is one, was begun with the settings that it would have now.

    Raises:
        UserError: it was begun with others, or the folder is something else.
        ArchiveCorrupt: it is damaged.
    """
    if not folder.exists():
        return
    if not (folder / "run.json").exists():
        raise UserError(f"{folder} exists and is no run; choose another name", argument="name")
    with Run.open(folder) as run:
        recorded = read_frozen(run.config.get("settings", {}), str(folder / "run.json"))
    before, now = _flatten(recorded), _flatten(planned.settings)
    for key in {**now, **before}:
        if before.get(key) != now.get(key):
            raise UserError(
                f"{key} is {format_value(now.get(key))}, but run {planned.name} was begun with "
                f"{format_value(before.get(key))}; put that back, or choose another name",
                argument="name",
            )


def _parse_vary(vary: Vary) -> Mapping[str, Sequence[Any]]:
    if isinstance(vary, Mapping):
        return vary
    parsed = {}
    for text in vary:
        key, _, values = text.partition("=")
        if not values:
            raise UserError(f"{text!r}: expected KEY=A,B, such as policy.name=lineage,hgm", argument="vary")
        try:
            parsed[key.strip()] = parse_toml(f"v = [{values}]".encode("utf-8", "surrogateescape"))["v"]
        except NotToml:
            parsed[key.strip()] = [parse_value(value.strip()) for value in values.split(",")]
    return parsed


def _check_values(key: str, values: Any) -> Sequence[Any]:  # noqa: ANN401  (as the user wrote it)
    fits = isinstance(values, Sequence) and not isinstance(values, str) and key != "seed"
    if not (fits and values and not any(isinstance(value, dict) for value in values)):
        raise UserError(f"{key}: expected a list of values (and seeds are varied by seeds)", argument="vary")
    return list(values)


def _name_value(key: str, value: object) -> str:
    text = "-".join(map(str, value)) if isinstance(value, list) else str(value)
    text = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "empty"
    last = key_path(key)[-1]
    return text if isinstance(value, str) and last in NAMED else f"{last}-{text}"


def _join_name(name: str, variant: str, seed: int) -> str:
    joined = "-".join(filter(None, (name, variant, str(seed))))
    if not NAME.fullmatch(joined):
        raise UserError(
            f"{joined!r}: a run's name is made of at most 100 letters, digits, '.', '_' and '-'",
            argument="name",
        )
    return joined


def _flatten(settings: Settings) -> Mapping[str, Any]:
    return {".".join(path): value for path, value in leaves(settings.model_dump(mode="json"))}

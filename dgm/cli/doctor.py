"""``dgm doctor``: checks of this machine, its settings and sandbox images, and what can be freed."""

import json as json_text
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dgm.api import machine
from dgm.cli.app import SETTINGS, confirm, print_json
from dgm.cli.commands import FIRST
from dgm.cli.steps import StepDisplay
from dgm.config.listing import ListedSetting
from dgm.errors import UserError
from dgm.render import fmt
from dgm.render.safe import neutralise, one_line
from dgm.views.machine import CheckRow, CleaningView, ImagesView, MachineView, SettingsView

WIDTH = 100
"""Columns of the settings where the output is no terminal."""
MISSING = {"key": "none set: {}", "model server": "none answers: {}"}
"""Group of optional checks → the line for those that are missing."""
SHOWN_SETTINGS = Parameter(name="--settings", metavar="NAME", consume_multiple=True, negative=())
RECIPES = Parameter(metavar="RECIPE", consume_multiple=True, negative=())


def doctor(
    *runs: str,
    model: str | None = None,
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    build: Annotated[list[str] | None, RECIPES] = None,
    clean: bool = False,
    shown_settings: Annotated[list[str] | None, SHOWN_SETTINGS] = None,
    json: bool = False,
) -> int:
    """Check that this machine can run a search: Python, git, disk, models and sandboxes.

    Args:
        runs: With --clean: runs to remove as a whole; asks first.
        model: Also make one small call to this model; it may cost money.
        assignments: A setting for that call, such as providers.NAME.base_url=URL.
        build: Build sandbox images now instead of at first use (default: python).
        clean: Free space: leftovers of dead processes, images that no run needs.
        shown_settings: Print all settings, or those whose name or meaning contains NAME.
        json: Print JSON.
    """
    if runs and not clean:
        raise UserError(f"{runs[0]}: add --clean to remove this run; nothing was removed")
    if assignments and not model:
        raise UserError("--set is about the model that --model names; name one")
    if sum((bool(model), build is not None, clean, shown_settings is not None)) > 1:
        raise UserError("--model, --build, --clean and --settings: give one of them")
    view: MachineView | SettingsView | ImagesView | CleaningView
    if clean and runs:
        view = machine.remove_runs(*runs, confirm=_confirm_removal)
    elif shown_settings is not None:
        view = machine.settings(" ".join(shown_settings))
    else:
        with StepDisplay() as on_step:
            if clean:
                view = machine.clean(on_step=on_step)
            elif build is not None:
                view = machine.build_images(build or machine.USUAL_IMAGES, on_step=on_step)
            else:
                view = machine.doctor(model, settings=assignments, on_step=on_step)
    if json:
        print_json(view)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(view))
    return int(getattr(view, "exit_code", 0))


def _lines(view: MachineView | SettingsView | ImagesView | CleaningView) -> Iterator[str]:
    match view:
        case MachineView():
            return _check_lines(view)
        case SettingsView():
            return _setting_lines(view)
        case ImagesView():
            return (f"{name:<20} {tag}" for name, tag in view.images.items())
        case CleaningView():
            return _cleaning_lines(view)


def _check_lines(view: MachineView) -> Iterator[str]:
    groups: dict[str, list[CheckRow]] = {}
    for row in view.checks:
        groups.setdefault(row.check.rpartition(": ")[0] or row.check, []).append(row)
    for group, rows in groups.items():
        fine = [row for row in rows if row.ok]
        missing = [row for row in rows if not row.ok]
        if group in MISSING:
            for row in fine:
                yield _check_line("ok", row.check, row.detail)
            if missing and not fine:
                names = ", ".join(_part(row) for row in missing)
                yield _check_line("--", f"{group}s", MISSING[group].format(names))
            continue
        if len(fine) > 1 and not missing:
            yield _check_line("ok", group, ", ".join(_part(row) for row in fine))
            continue
        for row in rows:
            yield _check_line("ok" if row.ok else "NO" if row.required else "--", row.check, row.detail)
    if view.ok:
        yield "This machine can run a search." + ("" if view.model else f" Start with: {FIRST}")
    elif view.model and view.checks[-1].check.startswith("model "):
        yield f"The model {one_line(view.model, 80)} cannot be used."
    else:
        yield "No search can run here: see the lines with NO."


def _part(row: CheckRow) -> str:
    return row.check.rpartition(": ")[2]


def _check_line(mark: str, name: str, detail: str) -> str:
    first, *more = neutralise(detail).splitlines() or [""]
    return "\n".join([f"{mark}  {one_line(name, 40):<22} {first}", *(f"{'':<27}{line}" for line in more)])


def _setting_lines(view: SettingsView) -> Iterator[str]:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    section: str | None = None
    for row in view.settings:
        name = row.name.rpartition(".")[0]
        if name != section:
            section = name
            yield f"[{name}]  {view.sections[name]}" if name else view.sections[name]
        yield f"  {row.name}  {row.type}, {_default_text(row)}"
        yield from _wrapped(row.meaning, width)
    if view.variables:
        yield "environment variables  secrets and locations; never part of a run's settings"
    for variable in view.variables:
        yield f"  {variable.name}"
        yield from _wrapped(variable.meaning, width)


def _wrapped(text: str, width: int) -> Sequence[str]:
    wrapped = textwrap.wrap(text, max(width - 6, 20), break_on_hyphens=False)
    return [f"      {line}" for line in wrapped]


def _default_text(row: ListedSetting) -> str:
    if row.required:
        return "must be given"
    if row.default is None:
        return "not set"
    if isinstance(row.default, float):
        return f"default {row.default:g}"
    return f"default {json_text.dumps(row.default, ensure_ascii=False)}"


def _cleaning_lines(view: CleaningView) -> Iterator[str]:
    for run in view.runs:
        name = one_line(run.run, 120)
        yield (
            f"{name}: left alone: {one_line(run.skipped, 300)}"
            if run.skipped
            else (f"{name}: {fmt.size(run.bytes)}")
        )
        if run.kept:
            yield f"  stays, with files that are not dgm's: {one_line(', '.join(run.kept), 300)}"
    for reason in view.failed:
        yield f"cannot be removed: {one_line(reason, 300)}"
    images, sandboxes = fmt.count(view.images, "image"), fmt.count(view.sandboxes, "sandbox", "sandboxes")
    yield f"freed {fmt.size(view.bytes)}; removed {images} and {sandboxes}"


def _confirm_removal(sizes: Mapping[Path, int]) -> bool:
    for folder, size in sizes.items():
        sys.stderr.write(f"{one_line(str(folder), 300)}: {fmt.size(size)}\n")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was removed: removing a run asks at a terminal; a script removes its folder")
    return confirm("Remove for good?")

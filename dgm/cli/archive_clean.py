"""``dgm archive gc`` and ``rm``: remove unneeded parts of runs, and whole runs; both first say what they free."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from dgm.archive.cleaning import CleaningResult, check_removable, clean_run, remove_run, run_bytes
from dgm.archive.garbage import Leftover, find_dead_drafts, remove_leftover
from dgm.cli.arguments import as_json
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json
from dgm.errors import UserError
from dgm.publish.finding import archive_folders, find_runs_in, locate_run
from dgm.show.runs import size_text
from dgm.show.safe import one_line

BESIDE = "beside the runs"
SCHEMA = 1


@click.command(short_help="Show, or with --delete remove, what runs no longer need.")
@click.argument("run_names", metavar="[RUN]…", nargs=-1)
@click.option("--delete", is_flag=True, help="Remove it; without this it is only shown.")
@as_json
def gc(run_names: tuple[str, ...], delete: bool, as_json: bool) -> int:
    """Show what all runs, or each RUN, no longer need: nothing is removed without --delete.

    That is what processes left that died or were stopped: traces that no event names, git objects that no agent needs,
    unfinished files. Without RUN also unfinished folders of runs, and folders of dead gateways. Runs that are being
    written, and those that cannot be read, are left alone. Images and sandboxes are removed by dgm sandbox gc.
    """
    from dgm.gateway.leftovers import find_dead_gateways

    folders = [_run_folder(name) for name in run_names] or _all_runs()
    cleaned = [clean_run(folder, delete=delete) for folder in folders]
    beside: list[Leftover] = []
    failed: list[str] = []
    if not run_names:
        places = {place.resolve(): place for place in archive_folders()}
        beside = [
            *(left for place in places.values() for left in find_dead_drafts(place)),
            *find_dead_gateways(),
        ]
        failed = list(_remove_leftovers(beside)) if delete else []
    if as_json:
        emit_json(_cleaning_record(cleaned, beside, failed, deleted=delete))
    else:
        sys.stdout.writelines(f"{each}\n" for each in _result_lines(cleaned, beside, failed, deleted=delete))
    return FAILED if failed else 0


@click.command(short_help="Remove whole runs.")
@click.argument("run_names", metavar="RUN…", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be freed.")
@as_json
def rm(run_names: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove each RUN with all that dgm put into its folder; it asks on a terminal, and wants --yes elsewhere.

    A run that is being written is refused. Files of your own in a run's folder stay, with the folder.
    """
    folders = list({folder.resolve(): folder for folder in map(_run_folder, run_names)}.values())
    for folder in folders:
        check_removable(folder)
    sizes = [run_bytes(folder) for folder in folders]
    if not as_json:
        for folder, size in zip(folders, sizes, strict=True):
            sys.stdout.write(f"{one_line(str(folder), 300)}: {size_text(size)}\n")
    if not dry_run and not yes and not _confirm_removal(len(folders), sum(sizes), as_json=as_json):
        sys.stdout.write("nothing was removed\n")
        return FAILED
    kept = [[] if dry_run else remove_run(folder) for folder in folders]
    if as_json:
        rows = [
            {"run": folder.name, "folder": str(folder), "bytes": size, "kept": list(names)}
            for folder, size, names in zip(folders, sizes, kept, strict=True)
        ]
        emit_json({"schema": SCHEMA, "removed": not dry_run, "bytes": sum(sizes), "runs": rows})
        return 0
    for folder, names in zip(folders, kept, strict=True):
        if names:
            left = one_line(", ".join(names), 300)
            sys.stdout.write(f"{one_line(str(folder), 300)} stays, with what is not dgm's: {left}\n")
    sys.stdout.write(f"{size_text(sum(sizes))} {'would be freed' if dry_run else 'freed'}\n")
    return 0


def _confirm_removal(count: int, size: int, *, as_json: bool) -> bool:
    """Return whether a person on a terminal agrees.

    Raises:
        UserError: there is no terminal to ask on.
    """
    if as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UserError(
            "nothing was removed, as nobody can be asked here: add --yes, or --dry-run to see sizes"
        )
    what = "this run" if count == 1 else f"these {count} runs"
    return click.confirm(f"Remove {what} for good ({size_text(size)})?", default=False)


def _run_folder(name: str) -> Path:
    place = locate_run(name)
    if not place.is_dir():
        raise UserError(f"{name}: is a packed run, which is one file; remove that file yourself")
    return place


def _all_runs() -> list[Path]:
    places = {place.resolve(): place for place in archive_folders()}
    # Hidden entries are unfinished; the search for leftovers finds them.
    return [run for place in places.values() for run in find_runs_in(place) if not run.name.startswith(".")]


def _remove_leftovers(beside: Sequence[Leftover]) -> Iterator[str]:
    """Remove leftovers; yield a reason for each that could not be removed."""
    for left in beside:
        try:
            remove_leftover(left)
        except OSError as error:
            yield f"{left.path}: {error.strerror}"


def _sum_by_kind(found: Sequence[Leftover]) -> dict[str, tuple[int, int]]:
    kinds: dict[str, tuple[int, int]] = {}
    for left in found:
        count, size = kinds.get(left.what, (0, 0))
        kinds[left.what] = count + 1, size + left.size_bytes
    return kinds


def _result_lines(
    cleaned: Sequence[CleaningResult], beside: Sequence[Leftover], failed: Sequence[str], *, deleted: bool
) -> Iterator[str]:
    places = [(one_line(one.folder.name, 120), one.found, one.skipped) for one in cleaned]
    for name, found, skipped in [*places, (BESIDE, beside, "")]:
        if skipped:
            yield f"{name}: left alone: {one_line(skipped, 300)}"
        for what, (count, size) in _sum_by_kind(found).items():
            yield f"{name}: {count:,} {what}, {size_text(size)}"
    for why in failed:
        yield f"cannot be removed: {one_line(why, 300)}"
    total = sum(left.size_bytes for found in (*(one.found for one in cleaned), beside) for left in found)
    if not total:
        yield "nothing to remove"
    elif deleted:
        yield f"{size_text(total)} freed"
    else:
        yield f"{size_text(total)} would be freed by: dgm archive gc --delete"


def _cleaning_record(
    cleaned: Sequence[CleaningResult], beside: Sequence[Leftover], failed: Sequence[str], *, deleted: bool
) -> dict[str, Any]:
    def kinds(found: Sequence[Leftover]) -> list[dict[str, Any]]:
        return [
            {"what": what, "count": count, "bytes": size}
            for what, (count, size) in _sum_by_kind(found).items()
        ]

    total = sum(left.size_bytes for found in (*(one.found for one in cleaned), beside) for left in found)
    runs = [
        {
            "run": one.folder.name,
            "folder": str(one.folder),
            "left_alone": one.skipped or None,
            "found": kinds(one.found),
        }
        for one in cleaned
    ]
    return {
        "schema": SCHEMA,
        "deleted": deleted,
        "bytes": total,
        "runs": runs,
        "beside": kinds(beside),
        "failed": list(failed),
    }

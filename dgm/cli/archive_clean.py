"""``dgm archive gc`` and ``rm``: remove unneeded parts of runs, and whole runs; both first say what they free."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dgm.cli.arguments import as_json
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json
from dgm.errors import UserError
from dgm.render.fmt import size as size_text
from dgm.show.safe import one_line

if TYPE_CHECKING:
    from dgm.sessions.cleaning import Cleanup

BESIDE = "beside the runs"


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
    from dgm.sessions.cleaning import clean_runs

    found = clean_runs(run_names, delete=delete)
    if as_json:
        emit_json(found.record())
    else:
        sys.stdout.writelines(f"{each}\n" for each in _result_lines(found))
    return FAILED if found.failed else 0


@click.command(short_help="Remove whole runs.")
@click.argument("run_names", metavar="RUN…", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be freed.")
@as_json
def rm(run_names: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove each RUN with all that dgm put into its folder; it asks on a terminal, and wants --yes elsewhere.

    A run that is being written is refused. Files of your own in a run's folder stay, with the folder.
    """
    from dgm.sessions.cleaning import SCHEMA, find_removable

    found = find_removable(run_names)
    total = sum(run.size_bytes for run in found)
    if not as_json:
        for run in found:
            sys.stdout.write(f"{one_line(str(run.folder), 300)}: {size_text(run.size_bytes)}\n")
    if not dry_run and not yes and not _confirm_removal(len(found), total, as_json=as_json):
        sys.stdout.write("nothing was removed\n")
        return FAILED
    kept = [[] if dry_run else run.remove() for run in found]
    if as_json:
        rows = [run.record(names) for run, names in zip(found, kept, strict=True)]
        emit_json({"schema": SCHEMA, "removed": not dry_run, "bytes": total, "runs": rows})
        return 0
    for run, names in zip(found, kept, strict=True):
        if names:
            left = one_line(", ".join(names), 300)
            sys.stdout.write(f"{one_line(str(run.folder), 300)} stays, with what is not dgm's: {left}\n")
    sys.stdout.write(f"{size_text(total)} {'would be freed' if dry_run else 'freed'}\n")
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


def _result_lines(done: "Cleanup") -> Iterator[str]:
    from dgm.sessions.cleaning import sum_by_kind

    places = [(one_line(one.folder.name, 120), one.found, one.skipped) for one in done.cleaned]
    for name, found, skipped in [*places, (BESIDE, done.beside, "")]:
        if skipped:
            yield f"{name}: left alone: {one_line(skipped, 300)}"
        for what, (count, size) in sum_by_kind(found).items():
            yield f"{name}: {count:,} {what}, {size_text(size)}"
    for why in done.failed:
        yield f"cannot be removed: {one_line(why, 300)}"
    total = done.total_bytes
    if not total:
        yield "nothing to remove"
    elif done.deleted:
        yield f"{size_text(total)} freed"
    else:
        yield f"{size_text(total)} would be freed by: dgm archive gc --delete"

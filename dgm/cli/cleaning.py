"""Printed results of ``dgm.clean``."""

import sys

from dgm.api.cleaning import Cleanup, clean
from dgm.cli.app import derive
from dgm.render.fmt import size as size_text
from dgm.render.safe import one_line


def show_cleanup(cleanup: Cleanup) -> None:
    """Print what was removed, or would be, run by run."""
    lines = []
    for run in cleanup.runs:
        if run.left_alone:
            lines.append(f"{run.run}: left alone: {run.left_alone}")
        lines += [f"{run.run}: {kind.count:,} {kind.what}, {size_text(kind.bytes)}" for kind in run.leftovers]
        if not run.left_alone and not run.leftovers and run.bytes:
            lines.append(f"{run.folder}: {size_text(run.bytes)}")
        if run.kept:
            lines.append(f"{run.folder} stays, with files that are not dgm's: {', '.join(run.kept)}")
    lines += [
        f"beside the runs: {kind.count:,} {kind.what}, {size_text(kind.bytes)}" for kind in cleanup.beside
    ]
    lines += [f"cannot be removed: {reason}" for reason in cleanup.failed]
    if not cleanup.bytes:
        lines.append("nothing to remove")
    else:
        lines.append(
            f"{size_text(cleanup.bytes)} " + ("freed" if cleanup.deleted else "would be freed (--delete)")
        )
    sys.stdout.writelines(f"{one_line(line, 400)}\n" for line in lines)


clean_command = derive(clean, show_cleanup)

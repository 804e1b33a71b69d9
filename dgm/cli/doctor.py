"""``dgm doctor``: can this machine run a search, and what would make it better?"""

import asyncio
import shutil
import subprocess
import sys

import click

from dgm.cli.arguments import as_json
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json
from dgm.errors import DgmError

Row = tuple[str, bool, str]
"""Check, whether it holds, and what was seen or what to do."""


@click.command()
@as_json
def doctor(as_json: bool) -> int:
    """Check Python, git, disk and sandboxes; each sandbox is opened and probed from the inside."""
    rows, usable = asyncio.run(_checks())
    if as_json:
        emit_json({"ok": usable, "checks": [{"check": c, "ok": ok, "detail": d} for c, ok, d in rows]})
        return 0 if usable else FAILED
    for check, ok, detail in rows:
        sys.stdout.write(f"{'ok ' if ok else 'NO '} {check:<28} {detail}\n")
    sys.stdout.write(
        "this machine can run a search\n" if usable else "no sandbox can be used: no search can run\n"
    )
    return 0 if usable else FAILED


async def _checks() -> tuple[list[Row], bool]:
    from dgm.sandboxes.choose import choose
    from dgm.sandboxes.probes import probe, supplies

    rows: list[Row] = [_python(), _git(), _disk()]
    found = [*supplies(), *await probe("docker"), *await probe("bubblewrap")]
    rows += [(row.name, row.ok, row.detail) for row in found]
    try:
        chosen = choose("auto")
    except DgmError as error:
        return [*rows, ("sandbox chosen by auto", False, str(error))], False
    return [*rows, ("sandbox chosen by auto", True, chosen.name)], True


def _python() -> Row:
    version = ".".join(map(str, sys.version_info[:3]))
    return "Python", sys.version_info >= (3, 11), version


def _git() -> Row:
    if not shutil.which("git"):
        return "git", False, "not found; install git"
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return "git", True, said


def _disk() -> Row:
    free = shutil.disk_usage(".").free / 1e9
    return "disk space here", free > 2.0, f"{free:.0f} GB free; a long run with images wants 2 GB or more"

"""The user's own command for packages (``--setup``), which runs in a build's sandbox in a copy of the checkout."""

from collections.abc import Callable, Mapping
from pathlib import Path

from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.protocols import Builder

SETUP_S = 1800.0
_SAID = 300
_SOURCE = "source"
_START = 'mkdir -p "$DGM_PACKAGES" && exec sh -c "$1"'


def last_line(text: str) -> str:
    """Return the last line of a text."""
    return text.strip().rpartition("\n")[2]


async def run_setup(  # noqa: PLR0913  (each is one fact of a language)
    command: str,
    files: Snapshot,
    builder: Builder,
    target: Path,
    *,
    inner: str = "",
    env: Callable[[str], Mapping[str, str]] = lambda _: {},
    hint: str = "",
    find_cause: Callable[[str], str] = last_line,
) -> str:
    """Run a command that fills ``$DGM_PACKAGES``, copy what it leaves to a new folder, and return what it was refused.

    Args:
        command: the user's.
        files: the checkout.
        builder: opens the sandbox.
        target: the new folder.
        inner: subfolder of it that ``$DGM_PACKAGES`` is; none: the whole.
        env: returns further variables, from ``$DGM_PACKAGES``.
        hint: end of the complaint where it leaves nothing.
        find_cause: returns the line of its output that tells why it failed; empty if none does.

    Raises:
        UserError: it fails, or leaves nothing.
        Infrastructure: the sandbox failed.
    """
    async with builder.open(public=True) as room:
        packages = "/".join(filter(None, [room.folder, target.name, inner]))
        await room.put(files, _SOURCE)
        done = await room.run(
            ["sh", "-c", _START, "sh", command],
            name=_SOURCE,
            timeout_s=SETUP_S,
            env={"DGM_PACKAGES": packages, **env(packages)},
        )
        if done.exit_code:
            cause = (find_cause(done.output) or last_line(done.output))[:_SAID]
            raise UserError(
                done.explain(f"--setup ended with exit status {done.exit_code}{cause and f': {cause}'}")
            )
        await room.fetch(target.name, target)
    if not any((target / inner).glob("*")):
        raise UserError(done.explain(f"--setup left nothing in $DGM_PACKAGES{hint}"))
    return done.refused

"""The file list of a sandbox folder that is too large to be read whole, and selected files of it."""

import os
from collections.abc import Iterable

from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.protocols import Sandbox
from dgm.sandboxes import tarball

_TIMEOUT_S = 60.0
_LISTING_BYTES = 20_000_000
_LIST = (
    r"""cd -- "$1" && find . -name .git -prune -o '(' -type f -o -type l ')' -printf '%s %P\0' 2>/dev/null"""
)
_GET = """
cd -- "$1" && exec tar -c --hard-dereference --null --verbatim-files-from --no-recursion --ignore-failed-read \
    -T - -f - 2>/dev/null
"""


async def list_files(sandbox: Sandbox, folder: str) -> dict[str, int]:
    """Return files and links below the folder with their sizes in bytes; the contents of a ``.git`` are left out.

    Raises:
        AgentFault: stage ``size``: there are so many that even their names are too much.
        Infrastructure: the sandbox failed.
    """
    done = await sandbox.exec(
        ["sh", "-c", _LIST, "list", folder], timeout_s=_TIMEOUT_S, cwd="/", output_limit=_LISTING_BYTES
    )
    if done.truncated or done.timed_out or not done.output:
        raise AgentFault("size", f"{folder} holds more files than can be listed")
    rows = (row.partition(b" ") for row in done.output.split(b"\0") if row)
    return {os.fsdecode(name): int(size) for size, _, name in rows}


async def get_files(
    sandbox: Sandbox, folder: str, names: Iterable[str], limit_bytes: int
) -> dict[str, Entry]:
    """Return the named files and links below the folder; missing ones are left out.

    Raises:
        AgentFault: stage ``size``: they have more than ``limit_bytes``; stage ``get``: they cannot be read.
        Infrastructure: the sandbox failed.
    """
    bound = tarball.stream_limit(limit_bytes)
    done = await sandbox.exec(
        ["sh", "-c", _GET, "get", folder],
        timeout_s=_TIMEOUT_S,
        cwd="/",
        stdin=b"".join(b"./" + os.fsencode(name) + b"\0" for name in names),
        output_limit=bound,
    )
    if done.truncated:
        raise tarball.size_fault(limit_bytes)
    if done.timed_out or done.exit_code > 1:
        raise AgentFault("get", f"{folder} cannot be read as the agent left it (tar exits {done.exit_code})")
    return tarball.unpack(done.output, limit_bytes)

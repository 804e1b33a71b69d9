"""``put`` and ``get`` of any sandbox, through its own ``exec``: only the sandbox's user touches the files.

So a link that an agent planted can lead nowhere that the agent could not go itself.
"""

from collections.abc import Sequence

from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Sandbox
from dgm.sandboxes import tarball

_TIMEOUT_S = 120.0
_PUT = 'mkdir -p -- "$1" && exec tar -x -m -f - -C "$1"'
_GET = """
exec 3>&1 2>/dev/null
cd -- "$1" || exit 66
limit=$2
shift 2
code=$({ { tar -c --hard-dereference -f - "$@" . 4>&-; echo $? >&4; } | head -c "$limit" >&3; } 4>&1)
exit "$code"
"""
_NO_FOLDER = 66
_GET_READABLE = 'chmod -R u+rwX -- "$1" 2>/dev/null; ' + _GET
_TAR_FILE_CHANGED = 1


async def put(sandbox: Sandbox, files: Snapshot, target: str) -> None:
    """Writes ``files`` below ``target``.

    Raises:
        AgentFault: stage ``put``: they do not fit, or something in the sandbox is in their way.
        Infrastructure: the sandbox failed.
    """
    stream = tarball.pack(files)
    done = await sandbox.exec(["sh", "-c", _PUT, "put", target], timeout_s=_TIMEOUT_S, cwd="/", stdin=stream)
    if done.timed_out:
        raise Infrastructure(f"writing {len(files)} files to {target} took more than {_TIMEOUT_S:.0f} s")
    if done.exit_code:
        said = done.output.decode("utf-8", "replace").strip().splitlines()
        raise AgentFault(
            "put", f"cannot write {len(files)} files to {target}: {said[0] if said else done.exit_code}"
        )


async def get(sandbox: Sandbox, source: str, *, limit_bytes: int, exclude: Sequence[str]) -> dict[str, Entry]:
    """Reads the folder ``source`` back.

    Raises:
        AgentFault: stage ``size``: it is beyond ``limit_bytes``; stage ``get``: there is no such folder.
        Infrastructure: the sandbox failed.
    """
    for script in (_GET, _GET_READABLE):
        # One byte too many shows that there is more; a hollow file of a terabyte must not be read to its end.
        bound = tarball.stream_limit(limit_bytes)
        done = await sandbox.exec(
            ["sh", "-c", script, "get", source, str(bound + 1), *tarball.excluded(exclude)],
            timeout_s=_TIMEOUT_S,
            cwd="/",
            output_limit=bound,
        )
        if done.timed_out or done.truncated:
            raise tarball.too_large(limit_bytes)
        if done.exit_code == _NO_FOLDER:
            raise AgentFault("get", f"there is no folder {source} to read")
        if done.exit_code <= _TAR_FILE_CHANGED:
            return tarball.unpack(done.output, limit_bytes)
    raise Infrastructure(f"tar could not read {source} in the sandbox (exit {done.exit_code})")

"""``put`` and ``get`` of any sandbox, as tar streams by its own ``exec``: only its user touches the files.

A link planted by an agent can therefore lead only to places that the agent can reach itself. A folder that is too large
to be read whole is listed, and selected files of it are read.

A stream that comes out is hostile. It is parsed in memory, never unpacked on the host's disk, and links stay links. If
it is broken while the sandbox lives on, that is the agent's doing: nothing else runs in there.
"""

import io
import os
import re
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files as package_files

from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed, Sandbox

MAX_FILES = 20_000
_HEADER_BYTES = 2048
"""Bytes for one entry's header, padding and long name, when a stream is bounded by its content."""
_END = bytes(1024)
"""Two empty blocks end every tar stream."""
_EXECUTABLE, _REGULAR, _LINK = 0o100755, 0o100644, 0o120000
_PROCESSOR_S = 60.0
"""Processor seconds of the programs that read a folder: an agent may make one that takes forever."""
_TIMEOUT_S = 240.0
"""Maximum wall time in seconds; it allows for a busy machine."""
_PUT = 'mkdir -p -- "$1" && exec tar -x -m -f - -C "$1"'
_GET = """
exec 3>&1 2>/dev/null
[ -L "$1" ] && exit 67
cd -- "$1" || exit 66
limit=$2
shift 2
list() { find . -mindepth 1 -maxdepth 1 "$@" -print0; }
pack() { list "$@" | tar -c --hard-dereference --null --verbatim-files-from -T - -f -; }
code=$({ { pack "$@" 4>&-; echo $? >&4; } | head -c "$limit" >&3 || echo 2 >&4; } 4>&1)
case $code in 0 | 1 | 126 | 127) exit "$code" ;; *) exit 2 ;; esac
"""
"""Script that reads a folder; ``find`` applies the exclusions, because tar needs minutes for deeply nested folders."""
_EXIT_NO_FOLDER, _EXIT_LINK = 66, 67
_NO_COMMAND = (126, 127)
_GET_READABLE = 'chmod -R u+rwX -- "$1" 2>/dev/null; ' + _GET
_TAR_FILE_CHANGED = 1
_LISTING_S = 60.0
_LISTING_BYTES = 20_000_000
_LIST = r"""
exec 2>/dev/null
cd -- "$1" && find . -name .git -prune -o '(' -type f -o -type l ')' -printf '%s %P\0'
"""
_GET_NAMED = """
exec 2>/dev/null
cd -- "$1" && exec tar -c --hard-dereference --null --verbatim-files-from --no-recursion --ignore-failed-read -T - -f -
"""

_NO_BASELINE, _CANNOT_BE_READ, _CUT_OFF = 70, 71, 72
_COMPARE_S = 720.0
"""Maximum wall time in seconds; it allows for a busy machine."""
_SAID = 300
_NOTES_BYTES = 4000
_LEFT_OUT = re.compile(rb"# left out (\d+) ([^\n]*)\n")


async def put(sandbox: Sandbox, files: Snapshot, target: str) -> None:
    """Write ``files`` below ``target``.

    Raises:
        AgentFault: stage ``put``: they do not fit, or something in the sandbox is in their way.
        Infrastructure: the sandbox failed.
    """
    stream = pack(files)
    done = await sandbox.exec(["sh", "-c", _PUT, "put", target], timeout_s=_TIMEOUT_S, cwd="/", stdin=stream)
    if done.timed_out:
        raise Infrastructure(f"writing {len(files)} files to {target} took more than {_TIMEOUT_S:.0f} s")
    if done.exit_code:
        said = done.output.decode("utf-8", "replace").strip().splitlines()
        raise AgentFault(
            "put", f"cannot write {len(files)} files to {target}: {said[0] if said else done.exit_code}"
        )


async def get(sandbox: Sandbox, source: str, *, limit_bytes: int, exclude: Sequence[str]) -> dict[str, Entry]:
    """Return the contents of the folder ``source``.

    Raises:
        AgentFault: stage ``size``: it exceeds ``limit_bytes``; stage ``get``: there is no such folder, or the agent
            made it unreadable.
        Infrastructure: the sandbox failed.
    """
    for script in (_GET, _GET_READABLE):
        # One byte over the limit shows that there is more; a sparse file of a terabyte must not be read to its end.
        bound = stream_limit(limit_bytes)
        done = await sandbox.exec(
            ["sh", "-c", script, "get", source, str(bound + 1), *exclude_arguments(exclude)],
            timeout_s=_TIMEOUT_S,
            cwd="/",
            output_limit=bound,
            processor_s=_PROCESSOR_S,
        )
        if done.truncated:
            raise size_fault(limit_bytes)
        if done.out_of_processor:
            raise AgentFault("get", f"{source} cannot be read within {_PROCESSOR_S:.0f} s of processor time")
        if done.timed_out:
            raise Infrastructure(f"reading {source} took more than {_TIMEOUT_S:.0f} s")
        if done.exit_code == _EXIT_LINK:
            raise AgentFault("get", f"{source} is a link now and no folder")
        if done.exit_code <= _TAR_FILE_CHANGED:
            return await _unpack(sandbox, done, limit_bytes)
    await _check_alive(sandbox)
    if done.exit_code == _EXIT_NO_FOLDER:
        raise AgentFault("get", f"there is no folder {source} to read")
    if done.exit_code in _NO_COMMAND:
        raise Infrastructure(f"the sandbox has no tar or no find that works (exit {done.exit_code})")
    # The agent made everything below the folder itself, and its user could read all files that were put there.
    raise AgentFault("get", f"{source} cannot be read as the agent left it (tar exits {done.exit_code})")


async def list_files(sandbox: Sandbox, folder: str) -> dict[str, int]:
    """Return files and links below the folder with their sizes in bytes; the contents of a ``.git`` are left out.

    Raises:
        AgentFault: stage ``size``: there are so many that even their names are too much.
        Infrastructure: the sandbox failed.
    """
    done = await sandbox.exec(
        ["sh", "-c", _LIST, "list", folder], timeout_s=_LISTING_S, cwd="/", output_limit=_LISTING_BYTES
    )
    if done.truncated or done.timed_out or not done.output:
        raise AgentFault("size", f"{folder} holds more files than can be listed")
    if done.exit_code > 1:
        await _check_alive(sandbox)
        raise AgentFault(
            "get", f"{folder} cannot be listed as the agent left it (find exits {done.exit_code})"
        )
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
    bound = stream_limit(limit_bytes)
    done = await sandbox.exec(
        ["sh", "-c", _GET_NAMED, "get", folder],
        timeout_s=_LISTING_S,
        cwd="/",
        stdin=b"".join(b"./" + os.fsencode(name) + b"\0" for name in names),
        output_limit=bound,
    )
    if done.truncated:
        raise size_fault(limit_bytes)
    if done.timed_out or done.exit_code > 1:
        await _check_alive(sandbox)
        raise AgentFault("get", f"{folder} cannot be read as the agent left it (tar exits {done.exit_code})")
    return await _unpack(sandbox, done, limit_bytes)


async def _unpack(sandbox: Sandbox, done: Completed, limit_bytes: int) -> dict[str, Entry]:
    try:
        return unpack(done.output, limit_bytes)
    except AgentFault:
        await _check_alive(sandbox)
        raise


async def _check_alive(sandbox: Sandbox) -> None:
    """Run nothing in the sandbox.

    Raises:
        Infrastructure: it is gone, which may have broken off what was read of it.
    """
    await sandbox.exec(["true"], timeout_s=_TIMEOUT_S, cwd="/")


async def patch_of(
    sandbox: Sandbox, workdir: str, baseline: str, limit_bytes: int, patterns: Sequence[str] = ()
) -> tuple[bytes, dict[str, int]]:
    """Return the patch from the image's ``baseline`` to the workdir, and the files too large for it with their bytes.

    It is git's own comparison, inside the sandbox: the image provides git, and its read-only baseline is the
    repository. Settings, attributes and index are set here, so the agent's leftovers (a ``.git`` of its own,
    attributes, links, times) have no effect. Only ignore files are respected; files that they hide are hidden from
    grading too.

    The patch includes binary files. All processes in the sandbox are ended first, and the sandbox is of no use to the
    agent afterwards.

    Args:
        sandbox: the sandbox in which the agent worked.
        workdir: the folder that is compared.
        baseline: the repository that it is compared with.
        limit_bytes: of the patch; if new files would exceed it, the largest are left out first.
        patterns: new files to leave out, as in ``.gitignore``, beside those that the folder itself ignores.

    Raises:
        AgentFault: stage ``patch``: it is longer than ``limit_bytes``, or the workdir cannot be read.
        Infrastructure: the sandbox failed, or the image has no such baseline.
    """
    await sandbox.halt()
    script = package_files("dgm.sandboxes").joinpath("compare.sh").read_text(encoding="utf-8")
    done = await sandbox.exec(
        ["sh", "-c", script, "compare", workdir, baseline, str(limit_bytes)],
        timeout_s=_COMPARE_S,
        cwd="/",
        stdin="".join(f"{pattern}\n" for pattern in patterns).encode(),
        output_limit=limit_bytes + _NOTES_BYTES + 1,
        processor_s=_PROCESSOR_S,
    )
    patch, left_out = _split_notes(done.output)
    if done.truncated or len(patch) > limit_bytes:
        raise AgentFault("patch", f"the patch has more than {limit_bytes} bytes, which are allowed")
    if done.timed_out and not done.out_of_processor:
        raise Infrastructure(f"comparing {workdir} with {baseline} took more than {_COMPARE_S:.0f} s")
    if done.out_of_processor or done.out_of_memory:
        ran_out = "processor time" if done.out_of_processor else "memory"
        raise AgentFault("patch", f"what is left in {workdir} cannot be compared: git ran out of {ran_out}")
    if done.exit_code == _CUT_OFF:
        raise AgentFault("patch", f"what is left in {workdir} cannot be compared: git failed on the way")
    said = done.output.decode("utf-8", "replace").strip()[:_SAID] or f"exit {done.exit_code}"
    if done.exit_code == _CANNOT_BE_READ:
        raise AgentFault("patch", f"what is left in {workdir} cannot be compared: {said}")
    if done.exit_code == _NO_BASELINE or done.exit_code in _NO_COMMAND:
        raise Infrastructure(f"the image's repository {baseline} cannot be used: {said}")
    if done.exit_code:
        raise Infrastructure(f"git cannot compare {workdir} with {baseline}: {said}")
    return patch, left_out


def _split_notes(output: bytes) -> tuple[bytes, dict[str, int]]:
    left_out: dict[str, int] = {}
    while found := _LEFT_OUT.match(output):
        left_out[found[2].decode("utf-8", "replace")] = int(found[1])
        output = output[found.end() :]
    return output, left_out


def pack(files: Snapshot) -> bytes:
    """Return a tar stream of the snapshot, in which every file is writable by its owner."""
    stream = io.BytesIO()
    now = int(time.time())
    with tarfile.open(
        fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name, entry in files.items():
            header = tarfile.TarInfo(name)
            header.mtime = now
            if stat.S_ISLNK(entry.mode):
                header.type = tarfile.SYMTYPE
                header.linkname = entry.data.decode("utf-8", "surrogateescape")
                archive.addfile(header)
            else:
                header.mode = stat.S_IMODE(entry.mode)
                header.size = len(entry.data)
                archive.addfile(header, io.BytesIO(entry.data))
    return stream.getvalue()


def stream_limit(limit_bytes: int) -> int:
    """Return the maximum bytes of a tar stream whose content is within the limits."""
    return limit_bytes + MAX_FILES * _HEADER_BYTES


def unpack(stream: bytes, limit_bytes: int) -> dict[str, Entry]:
    """Return the snapshot in a tar stream: files and links; devices, pipes and folders are left out.

    Raises:
        AgentFault: stage ``size``: more than ``limit_bytes``, or more than ``MAX_FILES`` files; stage ``get``: this is
            not a whole tar stream.
    """
    if not stream.endswith(_END):
        raise AgentFault("get", "what came out of the sandbox is not a whole tar stream: it has no end")
    files: dict[str, Entry] = {}
    size = 0
    for name, entry in _entries(stream):
        files[name] = entry
        size += len(entry.data)
        if size > limit_bytes:
            raise size_fault(limit_bytes)
        if len(files) > MAX_FILES:
            raise AgentFault("size", f"more than {MAX_FILES:,} files")
    return files


def size_fault(limit_bytes: int) -> AgentFault:
    """Return the error for a folder that exceeds its limit."""
    return AgentFault("size", f"more than {limit_bytes:,} bytes")


def exclude_arguments(exclude: Iterable[str]) -> list[str]:
    """Return the tests with which ``find`` leaves out the entries of exactly these names."""
    literal = (re.sub(r"([*?\[\\])", r"\\\1", name) for name in exclude)
    return [word for name in literal for word in ("!", "-name", name)]


def _entries(stream: bytes) -> Iterator[tuple[str, Entry]]:
    try:
        with tarfile.open(
            fileobj=io.BytesIO(stream), mode="r:", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if member.issym():
                    yield name, Entry(member.linkname.encode("utf-8", "surrogateescape"), _LINK)
                elif member.isreg():
                    content = archive.extractfile(member)
                    assert content is not None
                    mode = _EXECUTABLE if member.mode & stat.S_IXUSR else _REGULAR
                    yield name, Entry(content.read(), mode)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise AgentFault("get", f"what came out of the sandbox is not a whole tar stream: {error}") from error

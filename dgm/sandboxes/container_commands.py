"""The command line with which a program is started in a container, and what says that it never was."""

from collections.abc import Sequence

from dgm.sandboxes.confined import Output

OOM_COUNTERS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
"""Files in a container, of which one exists."""
CANNOT_START = (125, 126, 128)
"""Exit codes of a program that an engine could not start; programs end with them, too."""
_NO_PROCESS_LEFT = (b"/usr/bin/timeout: fork system call failed", b"OCI runtime exec failed")
_FED = 'exec 3>&2 2>/dev/null; "$@" 2>&3 3>&-; code=$?; cat >/dev/null; exit $code'
"""Command that reads the rest of the program's input: the engine would wait forever for a reader."""


def bound_command(argv: Sequence[str], cwd: str, timeout_s: float, *, fed: bool) -> list[str]:
    """Return the command that runs a program in a folder and kills it after its time.

    Args:
        argv: the program.
        cwd: the folder.
        timeout_s: the program's time in seconds.
        fed: whether it gets input.
    """
    feeding = ["/bin/sh", "-c", _FED, "sh"] if fed else []
    timeout = ["/usr/bin/timeout", "-s", "KILL", f"{timeout_s:.3f}"]
    return [*timeout, *feeding, "/usr/bin/env", "-C", cwd, "--", *argv]


def lacks_processes(exit_code: int | None, output: Output) -> bool:
    """Return whether the program never started for lack of processes."""
    return exit_code in CANNOT_START and (output.kept or output.said).startswith(_NO_PROCESS_LEFT)


def count_memory_kills(counters: bytes) -> int:
    """Return how many programs were killed for memory, by the contents of ``OOM_COUNTERS``."""
    counts = [line.split() for line in counters.decode("utf-8", "replace").splitlines()]
    return sum(int(fields[1]) for fields in counts if fields[:1] == ["oom_kill"])

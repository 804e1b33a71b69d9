"""The ``dgm`` command without its imports: a process that has made them forks once for each command.

A command is a process of its own in every other way: its environment, its folder, its three streams, its exit code.
Started anew, it takes a second of processor before it has read its first option, and the tests start hundreds. All
commands of one such process share the seed of their hashes, so that what must not depend on it is started anew.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
LENGTH = 1 << 20


class WarmStart:
    """A process that is ready to become any command; one command at a time."""

    def __enter__(self) -> Self:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._imports_from = os.environ.get("PYTHONPATH")
        words = [sys.executable, "-m", "tests.support.warm", str(theirs.fileno())]
        self._process = subprocess.Popen(
            words, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        return self

    def fits(self, variables: Mapping[str, str]) -> bool:
        """Whether a command with these variables would import the same modules."""
        return variables.get("PYTHONPATH") == self._imports_from

    def __exit__(self, *_: object) -> None:
        self._line.close()
        self._process.wait(20)

    def __call__(
        self,
        words: list[str],
        variables: Mapping[str, str],
        *,
        said: str = "",
        cwd: Path | None = None,
        timeout_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """Performs a command that reads ``said``.

        Raises:
            subprocess.TimeoutExpired: it took longer than ``timeout_s`` and was killed.
        """
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(said.encode())
            given.seek(0)
            asked = json.dumps({"words": words, "variables": dict(variables), "cwd": str(cwd or Path.cwd())})
            socket.send_fds(self._line, [asked.encode()], [given.fileno(), out.fileno(), err.fileno()])
            self._line.settimeout(timeout_s)
            pid = int(self._line.recv(LENGTH))
            try:
                code = int(self._line.recv(LENGTH))
            except TimeoutError as error:
                os.kill(pid, signal.SIGKILL)
                self._line.settimeout(20)
                self._line.recv(LENGTH)
                raise subprocess.TimeoutExpired(words, timeout_s) from error
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode())
        return subprocess.CompletedProcess(words, code, *texts)


def serve(line: socket.socket) -> None:
    """Forks for each command; returns in the child, which is to perform what ``sys.argv`` says."""
    while True:
        asked, streams, *_ = socket.recv_fds(line, LENGTH, 3)
        if not asked:
            os._exit(0)
        pid = os.fork()
        if not pid:
            line.close()
            become(json.loads(asked), streams)
            return
        for stream in streams:
            os.close(stream)
        line.send(str(pid).encode())
        line.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become(command: dict[str, object], streams: list[int]) -> None:
    """Takes the folder, the environment, the words and the streams of a command."""
    for own, given in enumerate(streams):
        os.dup2(given, own)
        os.close(given)
    os.chdir(str(command["cwd"]))
    os.environ.clear()
    os.environ.update(command["variables"])  # type: ignore[call-overload]
    sys.argv = ["dgm", *command["words"]]  # type: ignore[misc]


def load() -> None:
    """Imports every command, and what commands import only once they know what a run needs."""
    gc.disable()
    from dgm.cli.commands import COMMANDS

    targets = {command.target.partition(":")[0] for command in COMMANDS.values()}
    packages = ("archive", "gateway", "meta", "models", "offline", "policies", "simulation")
    files = [path.relative_to(ROOT) for name in packages for path in (ROOT / "dgm" / name).rglob("[a-z]*.py")]
    kept = [".".join(path.with_suffix("").parts) for path in files]
    for name in (*sorted(targets), *sorted(kept), "docker", "rich.live", "scipy.stats", "uvicorn"):
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.enable()


def end_at_once(code: object) -> None:
    """Ends the process as Python does, but for taking all modules apart, which would copy them first.

    That takes three quarters of the time of a short command. Commands that are started anew do it.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(int(str(code)))


if __name__ == "__main__":
    from dgm.cli.main import main

    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        main()
    except SystemExit as end:
        end_at_once(end.code)

"""The socket of an engine on another host, forwarded to a local one by a child process ``ssh``.

The child runs ``cat`` over there and ends with its standard input: so it does not outlive this process, however that
ends.
"""

import logging
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.engine_address import EngineAddress

log = logging.getLogger(__name__)

_READY = b"dgm-forwards"
_OPTIONS = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    "StreamLocalBindUnlink=yes",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "ForwardAgent=no",
    # A shared connection would keep the forwarding after the child.
    "ControlMaster=no",
    "ControlPath=none",
)
_ANSWERS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 5.0
_SOCKET_BYTES = 103
"""Maximum length of a socket's path on every system."""


class SshForward:
    """A forwarded socket. Its child process is started by ``ensure`` and lives as long as this object."""

    def __init__(self, address: EngineAddress) -> None:
        """Start nothing yet.

        Raises:
            UserError: there is no program ``ssh``.
        """
        if shutil.which("ssh") is None:
            raise UserError(f"{address}: there is no program ssh: install the package 'openssh-client'")
        self._address = address
        self._folder = _make_folder()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._finalizer = weakref.finalize(self, _end, None, self._folder)

    @property
    def socket(self) -> Path:
        """Path of the local socket, which stays the same when the child is started again."""
        return self._folder / "engine.sock"

    def ensure(self) -> None:
        """Start the child if none runs, and wait until it forwards. Blocks; safe from several threads.

        Raises:
            Infrastructure: the host does not answer or lets nobody in; the message quotes ssh.
        """
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                return
            if self._child is not None:
                log.warning("the connection to %s broke: connecting again", self._address.url)
            self._start()

    def close(self) -> None:
        """End the child and remove the socket; the second call does nothing."""
        self._finalizer()

    def _start(self) -> None:
        self._finalizer()
        self._folder.mkdir(mode=0o700)
        said = self._folder / "stderr"
        with said.open("wb") as errors:
            child = subprocess.Popen(
                _command(self._address, self.socket),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # A person's Ctrl-C ends the sandboxes first, through this connection.
                start_new_session=True,
            )
        self._child = child
        self._finalizer = weakref.finalize(self, _end, child, self._folder)
        if not _wait_until_ready(child):
            words = said.read_text("utf-8", "replace").strip().splitlines()
            self._finalizer()
            reason = words[-1] if words else f"no answer within {_ANSWERS_WITHIN_S:.0f} s"
            raise Infrastructure(f"cannot reach {self._address}: ssh says: {reason[:300]}")


def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="dgm-ssh-"))
    if len(bytes(folder / "engine.sock")) > _SOCKET_BYTES:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="dgm-ssh-", dir="/tmp"))
    return folder


def _command(address: EngineAddress, socket: Path) -> Sequence[str]:
    options = [word for option in _OPTIONS for word in ("-o", option)]
    port = ["-p", str(address.port)] if address.port else []
    user = ["-l", address.user] if address.user else []
    forward = ["-L", f"{socket}:{address.path}"]
    command = f"echo {_READY.decode()} && exec cat >/dev/null"
    return ["ssh", "-T", "-x", *options, *port, *user, *forward, "--", address.host, command]


def _wait_until_ready(child: subprocess.Popen[bytes]) -> bool:
    """Return whether the child says that it forwards, before it ends or its time is over."""
    assert child.stdout is not None
    watch = threading.Timer(_ANSWERS_WITHIN_S, child.kill)
    watch.daemon = True
    watch.start()
    try:
        # A login shell over there may print lines of its own.
        return any(_READY in line for line in child.stdout)
    finally:
        watch.cancel()


def _end(child: subprocess.Popen[bytes] | None, folder: Path) -> None:
    if child is not None:
        _end_child(child)
    shutil.rmtree(folder, ignore_errors=True)


def _end_child(child: subprocess.Popen[bytes]) -> None:
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
    child.terminate()
    try:
        child.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()

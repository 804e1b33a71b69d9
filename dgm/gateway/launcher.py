"""Starts an agent inside its sandbox and brings the model to it; standard library only, Python >= 3.9.

dgm does not import it but puts it into the sandbox as a file. It reads one JSON object from standard input
(the token is in no command line), offers the gateway's unix socket as a port of the loopback, makes the
workdir a repository, and runs the agent's command under a time limit. It exits as the agent did; 124 after a
time-out. First it asks the gateway something by the way that the agent will use, and starts no agent where that
fails; the gateway knows by that question that an agent was started.
"""

from __future__ import annotations

import contextlib
import io
import ipaddress
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

PORT = 8377
"""The same in every sandbox, so that what an agent sees of it is too; any free one where it is taken."""
CONNECTIONS = 32
CONNECT_S = 10.0
"""For a gateway that is busy."""
APPEARS_S = 3.0
"""For a socket that a relay is still making."""
REACH_S = 60.0
"""For the first answer of a gateway, which may be busy."""
UNREACHED = 69
"""Exit status where the gateway is not reached (EX_UNAVAILABLE)."""
LEAST_S = 0.01
"""An agent with less time left is out of time."""
GRACE_S = 3.0
"""Between asking an agent to stop and killing it."""
LISTENS = "0A"
"""State of a listening socket in /proc/net/tcp."""
MOST_SOCKETS = 20
ATTRIBUTES = "* -text -ident -filter !eol !working-tree-encoding\n"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def main() -> int:
    """Reads the launch, runs the agent, returns its exit status."""
    launch = json.load(sys.stdin)
    adopt_orphans()
    port = Forwarder(launch["socket"]).start()
    problem = try_gateway(launch, port)
    if problem:
        print(problem)  # noqa: T201
        return UNREACHED
    workdir = launch["workdir"]
    hidden = hide(Path(workdir), launch.get("hidden", []))
    make_repository(workdir)
    try:
        return run(launch, environment(launch, port), port)
    finally:
        restore(Path(workdir), hidden)


def environment(launch: dict[str, str], port: int) -> dict[str, str]:
    """All the variables that the agent gets."""
    base = f"http://127.0.0.1:{port}"
    packages = launch.get("packages")
    return {
        **({"PYTHONPATH": packages} if packages else {}),
        "PATH": os.environ.get("PATH", PATH),
        "HOME": os.environ.get("HOME", "/tmp"),
        "LANG": "C.UTF-8",
        "OPENAI_BASE_URL": base + "/v1",
        "OPENAI_API_KEY": launch["token"],
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": launch["token"],
        "DGM_MODEL": launch["model"],
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The log of an agent that is ended holds what it printed.
        "PYTHONUNBUFFERED": "1",
    }


def run(launch: dict[str, object], env: dict[str, str], port: int) -> int:
    """Runs the agent in a process group of its own and ends all of it at the time limit."""
    try:
        process = subprocess.Popen(
            launch["command"],  # type: ignore[call-overload]
            cwd=launch["cwd"],
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        print(f"the agent's command could not be started: {error}")  # noqa: T201
        return 127
    code = wait_for(process, launch)
    if code is None:
        signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        code = 124
    report_sockets(launch, open_sockets(port))
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    kill_orphans()
    return code if code >= 0 else 128 - code


def wait_for(process: subprocess.Popen[bytes], launch: dict[str, object]) -> int | None:
    """Waits for the agent within its time; what it waited for its model's provider does not count. None: too late."""
    end = time.monotonic() + float(launch["time_limit_s"])  # type: ignore[arg-type]
    lost = 0.0
    while True:
        left = end + lost - time.monotonic()
        if left <= 0.0:
            lost = lost_seconds(str(launch["socket"]), str(launch["token"]))
            left = end + lost - time.monotonic()
            if left <= LEAST_S:
                return None
        try:
            return process.wait(left)
        except subprocess.TimeoutExpired:
            continue


def lost_seconds(path: str, token: str) -> float:
    """Asks the gateway how long the agent's calls waited; 0 where it does not answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
            gateway.settimeout(CONNECT_S)
            gateway.connect(path)
            return float(json.loads(ask_clock(gateway, token).partition(b"\r\n\r\n")[2])["lost_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def open_sockets(port: int) -> list[str]:
    """Lists what listens on TCP beyond the loopback, without the launcher's own port; nothing without /proc."""
    listeners = []
    for name in ("tcp", "tcp6"):
        try:
            rows = Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            address, state = row.split()[1], row.split()[3]
            host, _, number = address.rpartition(":")
            ip = read_address(host)
            if state == LISTENS and not ip.is_loopback and int(number, 16) != port:
                listeners.append(f"{ip}:{int(number, 16)}")
    return sorted(listeners)[:MOST_SOCKETS]


def read_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Reads an address of /proc/net/tcp: words of four bytes in the order of the machine."""
    data = bytes.fromhex(host)
    if sys.byteorder == "little":
        data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    address = ipaddress.ip_address(data)
    return getattr(address, "ipv4_mapped", None) or address


def report_sockets(launch: dict[str, object], sockets: list[str]) -> None:
    """Tells the gateway what the agent left open; an agent that reaches the gateway can only add to it."""
    if not sockets:
        return
    body = " ".join(sockets).encode("ascii")
    head = (
        f"POST /v1/dgm/sockets HTTP/1.1\r\nHost: dgm\r\nAuthorization: Bearer {launch['token']}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
        gateway.settimeout(CONNECT_S)
        gateway.connect(str(launch["socket"]))
        gateway.sendall(head.encode("ascii") + body)
        while gateway.recv(65536):
            pass


def try_gateway(launch: dict[str, str], port: int) -> str:
    """Asks the gateway over the port that the agent will use; returns what is wrong, empty if it answers."""
    path = launch["socket"]
    deadline = time.monotonic() + APPEARS_S
    while not Path(path).exists():
        if time.monotonic() > deadline:
            return f"there is no {path} in the sandbox; the engine may see other files than dgm does"
        time.sleep(0.05)
    try:
        with socket.create_connection(("127.0.0.1", port), REACH_S) as near:
            answer = ask_clock(near, launch["token"])
        said = answer.partition(b"\r\n")[0].decode("utf-8", "replace")
    except OSError as error:
        said = f"over port {port}: {error}"
    if said.startswith("HTTP/1.1 200 "):
        return ""
    return f"{path} in the sandbox: {said or 'nobody answers'}"


def ask_clock(gateway: socket.socket, token: str) -> bytes:
    """Asks a connected gateway how long the agent's calls waited; returns the whole answer."""
    asked = f"GET /v1/dgm/clock HTTP/1.1\r\nHost: dgm\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    gateway.sendall(asked.encode())
    answer = b""
    while data := gateway.recv(65536):
        answer += data
    return answer


def signal_group(group: int, number: int) -> None:
    """Signals a process group, if there is anything left of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def adopt_orphans() -> None:
    """Makes this process the parent of what the agent leaves behind (PR_SET_CHILD_SUBREAPER)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def kill_orphans() -> None:
    """Ends what left the agent's group: nothing may change the workdir while it is read."""
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        try:
            listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="ascii")
        except OSError:
            return
        children = [int(word) for word in listed.split()]
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


def make_repository(workdir: str) -> None:
    """Gives the agent a repository with one commit, where there is git and no repository."""
    git = shutil.which("git")
    if not git or os.path.lexists(f"{workdir}/.git"):
        return
    env = {
        "PATH": os.environ.get("PATH", PATH),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "dgm" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        **{f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    }
    for command in (
        ["init", "-q", "--template="],
        ["config", "core.autocrlf", "false"],
        ["add", "-A", "-f"],
        ["-c", "gc.auto=0", "commit", "-q", "--no-verify", "--allow-empty", "-m", "start"],
    ):
        done = subprocess.run(
            [git, *command], cwd=workdir, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode:
            return
        if command[0] == "init":
            # Files count byte for byte: what the agent checks out again is what was there.
            Path(workdir, ".git", "info").mkdir(exist_ok=True)
            Path(workdir, ".git", "info", "attributes").write_text(ATTRIBUTES, encoding="ascii")


def hide(workdir: Path, patterns: Sequence[str]) -> bytes:
    """Takes what matches out of the workdir, so that the agent's program does not load it; returns it as an archive."""
    paths = sorted(
        {path for pattern in patterns for path in workdir.glob(pattern) if ".git" not in path.parts}
    )
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for path in paths:
            # The files of a folder that matched are gone by now.
            if os.path.lexists(path):
                archive.add(path, str(path.relative_to(workdir)))
                remove(path)
    git = shutil.which("git")
    if git and paths and Path(workdir, ".git").exists():
        # Else the agent sees them as deleted, and may bring them back.
        gone = subprocess.run([git, "ls-files", "-z", "-d"], cwd=workdir, capture_output=True, check=False)
        mark = [git, "update-index", "-z", "--skip-worktree", "--stdin"]
        subprocess.run(mark, cwd=workdir, input=gone.stdout, capture_output=True, check=False)
    return held.getvalue()


def restore(workdir: Path, hidden: bytes) -> None:
    """Puts back what was hidden, whatever the agent has written in its place."""
    with tarfile.open(fileobj=io.BytesIO(hidden)) as archive:
        # Links may lead anywhere: these are the repository's own files.
        archive.extraction_filter = lambda member, _: member
        for member in archive:
            place = workdir / member.name
            # Fails where the agent has made a file of the folder around it.
            with contextlib.suppress(OSError):
                if not (member.isdir() and place.is_dir()):
                    remove(place)
                    archive.extract(member, workdir)


def remove(path: Path) -> None:
    """Removes a file, a link or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


class Forwarder:
    """Offers a unix socket as a port of the loopback; one thread per connection."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._room = threading.BoundedSemaphore(CONNECTIONS)

    def start(self) -> int:
        """Begins to accept; returns the port."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", PORT))
        except OSError:
            listener.bind(("127.0.0.1", 0))
        listener.listen(CONNECTIONS)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return int(listener.getsockname()[1])

    def _accept(self, listener: socket.socket) -> None:
        while True:
            near, _ = listener.accept()
            self._room.acquire()
            try:
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()
            except RuntimeError:
                # No thread to be had: the agent used up its processes.
                near.close()
                self._room.release()

    def _serve(self, near: socket.socket) -> None:
        try:
            with near, contextlib.suppress(OSError):
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._connect() as far:
                    pump(near, far)
        finally:
            self._room.release()

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + CONNECT_S
        while True:
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                far.connect(self._path)
            except OSError:
                far.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return far


def pump(near: socket.socket, far: socket.socket) -> None:
    """Carries bytes both ways until both sides have ended."""
    open_ends = {near: far, far: near}
    while open_ends:
        for source in select.select(list(open_ends), [], [])[0]:
            target = far if source is near else near
            data = source.recv(65536)
            if data:
                target.sendall(data)
            else:
                del open_ends[source]
                target.shutdown(socket.SHUT_WR)
        if far not in open_ends:
            # The gateway has ended: what the agent would still say has no reader.
            return


if __name__ == "__main__":
    sys.exit(main())

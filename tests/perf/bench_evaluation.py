"""What an evaluation costs beside its two sandboxes; the bound is 1.5 times what they cost by hand.

By hand means: start a sandbox with the engine's own command-line client, use it for the very same commands with the
very same input (the agent's run included, on replies of the same model), and remove it; once for the agent and once
for the grading. Both are measured in turn in one run.

    python tests/perf/bench_evaluation.py [docker|bubblewrap] [--rounds 6]
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from dgm import assemble
from dgm.config import Settings
from dgm.domain import ActionId, Evaluate, Split
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.seccomp import profile


@dataclass
class Command:
    argv: list[str]
    cwd: str
    stdin: bytes


@dataclass
class Session:
    """One sandbox and the commands it was used for."""

    spec: object
    commands: list[Command] = field(default_factory=list)


class Recorder:
    """An engine that notes what is done with its sandboxes, at the level of single commands."""

    def __init__(self, engine):
        self.engine = engine
        self.name = engine.name
        self.sessions: list[Session] = []

    @asynccontextmanager
    async def open(self, spec):
        session = Session(spec)
        self.sessions.append(session)
        async with self.engine.open(spec) as sandbox:
            real = sandbox.exec

            async def exec_(argv, *, stdin=b"", cwd="/work", **rest):
                session.commands.append(Command(list(argv), cwd, stdin))
                return await real(argv, stdin=stdin, cwd=cwd, **rest)

            sandbox.exec = exec_
            yield sandbox

    async def reap(self, labels):
        return await self.engine.reap(labels)


def with_token(command: Command, token: str) -> Command:
    """The launch of an agent needs a token of its own."""
    if not command.argv[-1].endswith("launcher.py"):
        return command
    return replace(command, stdin=json.dumps({**json.loads(command.stdin), "token": token}).encode())


def docker_by_hand(session: Session, token: str) -> None:
    """``docker run``, ``docker exec`` …, ``docker rm``."""
    spec, recipe = session.spec, recipes.load("python")
    tmpfs = [
        w
        for f in ("/work", "/agent", "/job", "/tmp")
        for w in ("--tmpfs", f"{f}:rw,exec,size=64m,uid=10001,gid=10001")
    ]
    shown = [(m.source, m.target) for m in spec.mounts]
    shown += [(spec.socket.source.parent, Path(spec.socket.target).parent)] if spec.socket else []
    mounts = [w for source, target in shown for w in ("-v", f"{source}:{target}:ro")]
    confined = ["--network", "none", "--cap-drop", "ALL", "--read-only", "--init", "--ipc", "none"]
    confined += ["--security-opt", "no-new-privileges", "--security-opt", f"seccomp={profile()}"]
    confined += ["--memory", f"{spec.memory_mb}m", "--cpus", str(spec.cpus), "--pids-limit", str(spec.pids)]
    run = [
        "docker",
        "run",
        "-d",
        "--user",
        "10001:10001",
        *confined,
        *tmpfs,
        *mounts,
        recipe.tag,
        "sleep",
        "600",
    ]
    ident = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    try:
        for command in session.commands:
            used = with_token(command, token)
            words = ["docker", "exec", "-i", "-w", used.cwd, ident, *used.argv]
            subprocess.run(words, input=used.stdin, capture_output=True, check=False)
    finally:
        subprocess.run(["docker", "rm", "-f", ident], capture_output=True, check=True)


def bubblewrap_by_hand(session: Session, token: str) -> None:
    """One ``bwrap`` a command over a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="dgm-hand-") as scratch:
        binds = []
        for name in ("work", "agent", "job", "tmp"):
            Path(scratch, name).mkdir()
            binds += ["--bind", f"{scratch}/{name}", f"/{name}"]
        for mount in session.spec.mounts:
            binds += ["--ro-bind", str(mount.source), mount.target]
        system = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"]
        system += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"]
        confined = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
        confined += ["--setenv", "PATH", "/usr/bin:/bin"]
        for command in session.commands:
            used = with_token(command, token)
            words = ["bwrap", *confined, *system, *binds, "--chdir", used.cwd, *used.argv]
            subprocess.run(words, input=used.stdin, capture_output=True, check=False)


async def measure(sandbox: str, rounds: int, folder: Path) -> tuple[list[float], list[float]]:
    """Seconds of evaluations by dgm and by hand, in turn."""
    settings = Settings(model="offline", sandbox=sandbox)
    recorder = Recorder(choose(sandbox))
    parts = assemble.RunParts(recorder, assemble.open_suite(settings.benchmark, recorder))
    by_hand = docker_by_hand if sandbox == "docker" else bubblewrap_by_hand
    ours, theirs = [], []
    with assemble.create(folder, settings, parts) as run:
        tasks = parts.benchmark.tasks(Split.SEARCH)
        async with assemble.open_worker(run, settings, parts) as worker:
            for n in range(rounds + 1):
                recorder.sessions.clear()
                action = Evaluate(run.tree.agents[0].id, tasks[n].id)
                began = time.perf_counter()
                await worker.perform(ActionId(2 * n + 1), action)
                ours.append(time.perf_counter() - began)
                with worker.session.gateway.lend(ActionId(2 * n + 2), "solve") as lease:
                    began = time.perf_counter()
                    for session in recorder.sessions:
                        await asyncio.to_thread(by_hand, session, lease.token)
                    theirs.append(time.perf_counter() - began)
    return ours[1:], theirs[1:]


def main() -> None:
    """Prints medians and their ratio for each engine asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sandboxes", nargs="*", default=["docker", "bubblewrap"])
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    for sandbox in given.sandboxes:
        with tempfile.TemporaryDirectory(prefix="dgm-bench-") as scratch:
            ours, theirs = asyncio.run(measure(sandbox, given.rounds, Path(scratch) / "run"))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        print(
            f"{sandbox:<11} evaluation {median(ours):5.2f} s   by hand {median(theirs):5.2f} s   "
            f"ratio {sum(ours) / sum(theirs):4.2f} (median of pairs {median(ratios):4.2f})"
        )


if __name__ == "__main__":
    main()

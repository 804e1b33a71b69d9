"""One agent on one repository of the user's: outside of any search, with nothing recorded."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.snapshots import from_folder, from_names
from dgm.config import LimitSettings
from dgm.domain import ActionId, Snapshot
from dgm.errors import AgentFault, DgmError, UserError
from dgm.gateway.lease import CallLimits
from dgm.gateway.server import Gateway
from dgm.messages import CallKey, Reply, Request
from dgm.models.choose import open_model
from dgm.protocols import Job, JobKind, SandboxEngine, SandboxSpec, Work
from dgm.sandboxes.choose import EngineName, choose
from dgm.search.workbench import SandboxWorkbench

IMAGE = "python"
WORKDIR = "/work/repo"
LIMIT_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Means:
    """What the agent is given."""

    model: str
    sandbox: EngineName
    time_limit_s: float


class _NothingKept:
    """A journal for work that is not part of a run."""

    def recorded(self, key: CallKey) -> Reply | None:  # noqa: ARG002  (nothing is ever recorded)
        return None

    def afford(self, key: CallKey) -> None:
        """Agrees to everything: the lease has a limit of its own."""

    def record(self, key: CallKey, role: str, request: Request, reply: Reply, seconds: float) -> None:
        """Keeps nothing."""


def user_files(repo: Path) -> Snapshot:
    """The files of a repository that its owner would commit: tracked ones and new ones that git does not ignore.

    A folder that is no git repository is taken whole.

    Raises:
        UserError: it is too large to be copied.
    """
    words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."]
    listed = subprocess.run([_git(), "-C", str(repo), *words], capture_output=True, check=False)
    names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    try:
        if listed.returncode != 0 or not names:
            return from_folder(repo, limit_bytes=LIMIT_BYTES)
        return from_names(repo, names, limit_bytes=LIMIT_BYTES)
    except AgentFault as error:
        raise UserError(f"{repo}: {error}; give a smaller folder") from error
    except OSError as error:
        raise UserError(f"{repo}: cannot be read: {error}") from error


def _git() -> str:
    found = shutil.which("git")
    if found is None:
        raise UserError("git is not installed; dgm needs it (for example: apt-get install git)")
    return found


async def solve(source: Snapshot, before: Snapshot, problem: str, means: Means) -> Work:
    """Lets the agent work on a copy in a sandbox.

    Raises:
        DgmError: what the agent left cannot be used.
        Infrastructure: the sandbox or the model failed.
    """
    engine = choose(means.sandbox)
    job = Job(JobKind.SOLVE, problem, source, before, IMAGE, WORKDIR, means.time_limit_s)
    async with _bench(engine, means) as bench:
        try:
            return await bench.work(job)
        except AgentFault as fault:
            raise DgmError(f"the agent's work cannot be used ({fault.stage}): {fault}") from fault


@asynccontextmanager
async def _bench(engine: SandboxEngine, means: Means) -> AsyncIterator[SandboxWorkbench]:
    labels = {"dgm.run": f"solve-{uuid.uuid4().hex}", "dgm.host": socket.gethostname()}
    limits = LimitSettings(workspace_bytes=2 * LIMIT_BYTES, patch_bytes=LIMIT_BYTES)
    folder = Path(tempfile.mkdtemp(prefix="dgm-gateway-"))
    models = {"solve": open_model(means.model)}
    try:
        async with Gateway(
            folder, _NothingKept(), models, CallLimits(calls=limits.calls, tokens=limits.tokens)
        ) as gateway:
            spec = SandboxSpec(IMAGE, labels, disk_mb=1024)
            yield SandboxWorkbench(engine.open, gateway, ActionId(1), spec, limits)
    finally:
        await engine.reap(labels)
        await asyncio.to_thread(shutil.rmtree, folder, True)


def apply(repo: Path, patch: bytes) -> None:
    """Applies the patch to the user's files, all of it or nothing.

    Raises:
        UserError: it does not apply, because the repository has changed meanwhile.
    """
    # Without a repository around it, git takes the patch's paths from this folder, whatever folder it is.
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(repo.resolve()), "GIT_DIR": os.devnull}
    words = [_git(), "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(words, cwd=repo, env=alone, input=patch, capture_output=True, check=False)
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(
            f"{repo}: the change does not apply any more ({why[0] if why else 'git apply failed'})"
        )

"""What a child must pass before anything is spent on evaluating it; the cheapest question first.

Each stage raises ``AgentFault`` with its own name, so that stillborn children are counted by stage.
"""

import asyncio
from collections.abc import Callable

from dgm.config import LimitSettings
from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.meta.contract import Contract, read_contract
from dgm.protocols import Job, JobKind, OpenSandbox, Proposal, SandboxSpec, Workbench

IsKnown = Callable[[Snapshot], str | None]
"""Names an existing agent of the same content, if there is one."""

DRY_RUN = "This is a dry run: change nothing and say DONE."


async def vet(
    proposal: Proposal, parent: Snapshot, known: IsKnown, limits: LimitSettings, stage: "Stages"
) -> None:
    """Passes a proposal through every stage.

    Raises:
        AgentFault: it failed; ``stage`` is one of ``unchanged``, ``protected``, ``size``, ``duplicate``,
            ``contract``, ``check``, ``improve``.
        Infrastructure: a sandbox failed.
    """
    child = proposal.source
    if child == parent:
        raise AgentFault("unchanged", "the child's source is the same as its parent's")
    forbidden = read_contract(parent).forbidden_changes(parent, child)
    if forbidden:
        raise AgentFault("protected", f"changed protected files: {', '.join(forbidden[:5])}")
    _check_size(child, limits)
    twin = await asyncio.to_thread(known, child)
    if twin:
        raise AgentFault("duplicate", f"the same content as {twin}")
    contract = read_contract(child)
    await stage.check(child, contract)
    await stage.start_improve(child)


def _check_size(child: Snapshot, limits: LimitSettings) -> None:
    total = sum(len(entry.data) for entry in child.values())
    if total > limits.agent_bytes:
        raise AgentFault("size", f"the agent's source has {total} bytes; {limits.agent_bytes} are allowed")
    if len(child) > limits.agent_files:
        raise AgentFault(
            "size", f"the agent's source has {len(child)} files; {limits.agent_files} are allowed"
        )


class Stages:
    """The stages that need a sandbox."""

    def __init__(
        self, open_sandbox: OpenSandbox, spec: SandboxSpec, dry_bench: Workbench, check_s: float
    ) -> None:
        """Takes a way to open sandboxes and a workbench whose model only ever says DONE.

        Args:
            open_sandbox: opens the sandbox of the self-check.
            spec: what that sandbox may have.
            dry_bench: lends the scripted model of the dry run.
            check_s: wall seconds that the self-check may take.
        """
        self._open = open_sandbox
        self._spec = spec
        self._dry_bench = dry_bench
        self._check_s = check_s
        self._packages = ":".join(mount.target for mount in spec.mounts)

    async def check(self, child: Snapshot, contract: Contract) -> None:
        """Runs the agent's self-check; it must exit 0 in time."""
        async with self._open(self._spec) as sandbox:
            await sandbox.put(child, "/agent")
            done = await sandbox.exec(
                contract.check,
                timeout_s=self._check_s,
                cwd="/agent",
                env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": self._packages},
                output_limit=20_000,
            )
        if done.timed_out:
            raise AgentFault("check", f"the self-check did not end within {self._check_s:g} s")
        if done.exit_code != 0:
            raise AgentFault("check", f"the self-check exits {done.exit_code}: {last_line(done.output)}")

    async def start_improve(self, child: Snapshot) -> None:
        """Starts an improve job whose model says DONE at once; the agent must ask it and end by itself."""
        work = await self._dry_bench.work(
            Job(
                kind=JobKind.IMPROVE,
                problem=DRY_RUN,
                source=child,
                workspace=child,
                image=self._spec.image,
                workdir="/work/agent",
                time_limit_s=max(30.0, self._check_s),
            )
        )
        if work.completed.timed_out:
            raise AgentFault("improve", "an improve job does not end although the model says DONE")
        if work.calls == 0:
            why = last_line(work.completed.output)
            raise AgentFault(
                "improve", f"an improve job never asks the model (exit {work.completed.exit_code}: {why})"
            )
        if work.completed.exit_code != 0 and b"Traceback (most recent call last)" in work.completed.output:
            raise AgentFault("improve", f"an improve job crashes: {last_line(work.completed.output)}")


def last_line(output: bytes) -> str:
    """The last non-empty line, printable, at most 160 characters."""
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    text = lines[-1].strip() if lines else "no output"
    return "".join(c if c.isprintable() else "�" for c in text)[:160]

"""The checks that a child must pass before anything is spent on evaluating it; the cheapest check first.

Each stage raises ``AgentFault`` with its own name, so that stillborn children are counted by stage.

The time and result of each stage are the trace ``vetting`` of an expansion: ``{"stages": [{"stage": "patch", "seconds":
0.013, "result": "passed"}, …]}`` in the order in which they ran. The result is ``passed``, ``failed`` (then the last
one, with a ``reason``), ``skipped`` (nothing to check, with a ``note``) or ``broken`` (the infrastructure failed). A
stage that the settings turn off is not named.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dgm.archive.repository import applying_patch, patch
from dgm.archive.snapshots import tree_id
from dgm.conduct import Secrets, inspect_edit
from dgm.config import GateSettings, LimitSettings, VettingSettings
from dgm.domain import Entry, Finding, Snapshot, TaskId, Verdict
from dgm.errors import AgentFault, ArchiveCorrupt, UserError
from dgm.meta.contract import OWN_EDITOR, read_contract
from dgm.meta.similarity import AgentEdit, Judge, check_novel, syntax_key
from dgm.protocols import Completed, Grade, Job, JobKind, Work, Workbench

DRY_RUN = "This is a dry run: change nothing and say DONE."
DRY_WORKSPACE: Snapshot = {"README.md": Entry(b"An empty project.\n")}
"""The repository of a rehearsed solve job."""
TIME_OUT = "time-out"
"""The cause of a fault by a limit of time."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DryRuns:
    """Runs of an agent without a real model: its self-check, and jobs whose model only ever says DONE."""

    bench: Workbench
    image: str
    """Recipe of the sandbox."""
    check_s: float
    """Processor seconds that the self-check may take, and each job."""

    async def check(self, source: Snapshot) -> Completed:
        """Run the agent's self-check; it must exit 0 in time. Return how it ended."""
        done = await self.bench.check(source)
        if done.timed_out:
            raise AgentFault("check", f"the self-check {self._describe_timeout(done)}", done.output, TIME_OUT)
        if done.exit_code != 0:
            reason = f"the self-check exits {done.exit_code}: {last_line(done.output)}"
            raise AgentFault("check", reason, done.output, _exception_of(done))
        return done

    async def start_improve(self, source: Snapshot) -> None:
        """Start an improve job; the agent must ask its model and end by itself.

        An agent that another one edits never has such a job, and starts a solve job instead.
        """
        if read_contract(source).editor == OWN_EDITOR:
            name, job = "an improve job", self._job(JobKind.IMPROVE, source, source, "/work/agent")
        else:
            name, job = "a solve job", self._job(JobKind.SOLVE, source, DRY_WORKSPACE, "/work/repo")
        work = await self.bench.work(job)
        done = work.completed
        if done.timed_out:
            cause = TIME_OUT
            reason = f"{name}, to which the model only says DONE, {self._describe_timeout(done)}"
        elif work.calls == 0:
            cause = "no call"
            reason = f"{name} never asks the model (exit {done.exit_code}: {last_line(done.output)})"
        elif done.exit_code != 0 and b"Traceback (most recent call last)" in done.output:
            cause = _exception_of(done)
            reason = f"{name} crashes: {last_line(done.output)}"
        else:
            return
        raise AgentFault("improve", reason, done.output, cause)

    async def start_solve(self, source: Snapshot) -> Work | None:
        """Start a solve job; the agent must reach its first request.

        The agent's use of the answer is not judged: many agents expect another form than DONE. An agent that is still
        running at the time limit, and has asked nothing, is only reported in the log.

        Returns:
            What the agent left; None if that cannot be used.

        Raises:
            AgentFault: stage ``start``: the agent's program fails before it asks its model.
            Infrastructure: the sandbox failed.
        """
        try:
            work = await self.bench.work(self._job(JobKind.SOLVE, source, DRY_WORKSPACE, "/work/repo"))
        except AgentFault as fault:
            log.info("the dry run left what cannot be used (%s): %s", fault.stage, fault)
            return None
        done = work.completed
        if work.calls or work.refused or done.exit_code == 0:
            return work
        if done.timed_out:
            log.warning("the agent did not ask its model within %.0f s of a dry run", done.seconds)
            return work
        reason = f"a job exits {done.exit_code} before it asks the model: {last_line(done.output)}"
        raise AgentFault("start", reason)

    def _describe_timeout(self, done: Completed) -> str:
        if done.out_of_processor:
            return f"took more than {self.check_s:g} s of processor time (limits.check_s)"
        return f"did not end within {done.seconds:.0f} s, at a second try: it waits for something"

    def _job(self, kind: JobKind, source: Snapshot, workspace: Snapshot, workdir: str) -> Job:
        return Job(
            kind=kind,
            problem=DRY_RUN,
            source=source,
            workspace=workspace,
            image=self.image,
            workdir=workdir,
            time_limit_s=self.check_s,
            processor_s=self.check_s,
        )


@dataclass(slots=True)
class Vetting:
    """One child, and what it is held against. ``run`` passes it through the stages."""

    child: Snapshot
    parent: Snapshot
    """The first parent's source."""
    dry: DryRuns
    try_task: Callable[[Snapshot, TaskId], Awaitable[Grade]]
    """Has an agent of that source try a task, and grades it; raises as a workbench and a benchmark do."""
    probes: Sequence[TaskId] = ()
    """Tasks that all parents have always resolved."""
    known: Callable[[Snapshot], str | None] = lambda _: None
    """Lookup of an existing agent with the same content; returns its name or None."""
    syntax: Callable[[], Mapping[str, str]] = dict
    """Lookup of ``syntax_key`` of every agent's source → name of the agent; called once, when needed."""
    edits: Callable[[], Sequence[AgentEdit]] = tuple
    """Lookup of the edits of siblings and of agents that the operator was shown; called once, when needed."""
    limits: LimitSettings = field(default_factory=LimitSettings)
    vetting: VettingSettings = field(default_factory=VettingSettings)
    gates: GateSettings = field(default_factory=GateSettings)
    judge: Judge | None = None
    """Judge of the gate ``novelty``, if a model decides."""
    secrets: Callable[[], Secrets] = Secrets
    """Lookup of texts that only the benchmark's tasks hold; called once, when needed."""
    on_misconduct: Literal["flag", "reject"] = "flag"
    findings: dict[Finding, None] = field(default_factory=dict)
    """Receives the findings in the child's edit."""
    key: str = ""
    """``syntax_key`` of the child, once it is known; empty where the settings do not ask for it."""
    stages: list[dict[str, Any]] = field(default_factory=list)
    """Records of the stages that the child reached."""

    async def run(self) -> str:
        """Pass the child through every stage that the settings ask for, and return its ``syntax_key``.

        Raises:
            AgentFault: it failed; ``stage`` is one of ``patch``, ``unchanged``, ``protected``, ``size``, ``conduct``,
                ``duplicate``, ``syntax``, ``contract``, ``novelty``, ``check``, ``improve``, ``probe``.
            Infrastructure: a sandbox or a model failed.
        """
        stages: list[tuple[str, bool, Callable[[dict[str, Any]], Awaitable[None]]]] = [
            ("patch", self.vetting.patch, self._patch),
            ("unchanged", True, self._unchanged),
            ("protected", True, self._protected),
            ("size", True, self._size),
            ("conduct", True, self._conduct),
            ("duplicate", True, self._duplicate),
            ("syntax", self.vetting.syntax, self._syntax),
            ("contract", True, self._contract),
            ("novelty", self.gates.novelty != "off", self._novelty),
            ("check", True, self._check),
            ("improve", True, self._improve),
            ("probe", self.vetting.probes > 0, self._probe),
        ]
        for name, is_wanted, stage in stages:
            if is_wanted:
                await self._record(name, stage)
        return self.key

    def trace(self) -> bytes:
        """Return the record of the stages."""
        return json.dumps({"stages": self.stages}).encode()

    async def _record(self, name: str, stage: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        record: dict[str, Any] = {"stage": name, "seconds": 0.0, "result": "passed"}
        self.stages.append(record)
        began = time.perf_counter()
        try:
            await stage(record)
        except AgentFault as fault:
            record |= {"result": "failed", "reason": str(fault)}
            raise
        except BaseException:
            record["result"] = "broken"
            raise
        finally:
            record["seconds"] = round(time.perf_counter() - began, 6)

    async def _patch(self, _: dict[str, Any]) -> None:
        """Make the patch from parent to child in its displayed, stored and reviewed form, and apply it."""
        try:
            await asyncio.to_thread(tree_id, self.child)
        except UserError as error:
            raise AgentFault("patch", f"it is no folder of files: {error}") from error
        try:
            diff = await asyncio.to_thread(applying_patch, self.parent, self.child)
        except ArchiveCorrupt as error:
            raise AgentFault("patch", f"the change does not apply as a patch: {error}") from error
        if len(diff) > self.limits.patch_bytes:
            reason = f"the change has {len(diff)} bytes as a patch; {self.limits.patch_bytes} are allowed"
            raise AgentFault("patch", reason)

    async def _unchanged(self, _: dict[str, Any]) -> None:
        if self.child == self.parent:
            raise AgentFault("unchanged", "the child's source is the same as its parent's")

    async def _protected(self, _: dict[str, Any]) -> None:
        forbidden = read_contract(self.parent).forbidden_changes(self.parent, self.child)
        if forbidden:
            paths = ", ".join(forbidden[:5])
            raise AgentFault("protected", f"changed files outside `editable` or in `protected`: {paths}")

    async def _size(self, _: dict[str, Any]) -> None:
        total, limits = sum(len(entry.data) for entry in self.child.values()), self.limits
        if total > limits.agent_bytes:
            raise AgentFault(
                "size", f"the agent's source has {total} bytes; {limits.agent_bytes} are allowed"
            )
        if len(self.child) > limits.agent_files:
            reason = f"the agent's source has {len(self.child)} files; {limits.agent_files} are allowed"
            raise AgentFault("size", reason)

    async def _conduct(self, record: dict[str, Any]) -> None:
        """Look for tasks' own texts, and ways around checks, in what the edit adds; tell only where."""

        def inspect() -> Sequence[Finding]:
            return inspect_edit(patch(self.parent, self.child), self.parent, self.secrets())

        try:
            findings = await asyncio.to_thread(inspect)
        except UserError as error:  # another stage's fault, which may be turned off
            record |= {"result": "skipped", "note": str(error)}
            return
        if not findings:
            return
        self.findings.update(dict.fromkeys(findings))
        lines = "; ".join(f"{finding.location}: {finding.detail}" for finding in findings)
        record["note"] = lines
        if self.on_misconduct == "reject":
            raise AgentFault("conduct", lines)

    async def _duplicate(self, _: dict[str, Any]) -> None:
        if twin := await asyncio.to_thread(self.known, self.child):
            raise AgentFault("duplicate", f"the same content as {twin}")

    async def _syntax(self, _: dict[str, Any]) -> None:
        self.key = await asyncio.to_thread(syntax_key, self.child)
        if twin := (await asyncio.to_thread(self.syntax)).get(self.key):
            raise AgentFault("syntax", f"but for comments, docstrings and layout the same as {twin}")

    async def _contract(self, _: dict[str, Any]) -> None:
        read_contract(self.child)

    async def _novelty(self, record: dict[str, Any]) -> None:
        edit = await asyncio.to_thread(patch, self.parent, self.child)
        others = await asyncio.to_thread(self.edits)
        note = await check_novel(edit, others, self.gates.novelty_threshold, self.judge)
        record["note"] = note or "no other edit has anything in common with it"
        if not note:
            record["result"] = "skipped"

    async def _check(self, _: dict[str, Any]) -> None:
        await self.dry.check(self.child)

    async def _improve(self, _: dict[str, Any]) -> None:
        await self.dry.start_improve(self.child)

    async def _probe(self, record: dict[str, Any]) -> None:
        """Let the child work on the probe tasks until it resolves one; one that resolves none is broken, not bad."""
        if not self.probes:
            record |= {"result": "skipped", "note": "there is no task that its parents have always resolved"}
            return
        tries = record["tries"] = []
        for task in self.probes:
            began = time.perf_counter()
            try:
                grade = await self.try_task(self.child, task)
            except AgentFault as fault:
                grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
            seconds = round(time.perf_counter() - began, 6)
            verdict = grade.verdict.value
            tries.append({"task": task, "verdict": verdict, "reason": grade.reason, "seconds": seconds})
            if grade.verdict is Verdict.RESOLVED:
                return
        which = "the task" if len(tries) == 1 else f"any of the {len(tries)} tasks"
        reasons = "; ".join(f"{attempt['task']}: {attempt['reason']}" for attempt in tries)
        raise AgentFault("probe", f"does not solve {which} that its parents always solve ({reasons})")


def last_line(output: bytes) -> str:
    """Return the last non-empty line, printable, at most 160 characters."""
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    text = lines[-1].strip() if lines else "no output"
    return "".join(c if c.isprintable() else "\ufffd" for c in text)[:160]


def _exception_of(done: Completed) -> str:
    """Return the first word of the program's last line, the exception's name if it ended by one."""
    return (last_line(done.output).split(maxsplit=1) or [""])[0].rstrip(":")[:80]

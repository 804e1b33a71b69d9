"""The worker: performs one action and returns one outcome.

A worker reads the archive's sources and traces and writes traces and commits (data first). The loop writes the
event that names them. Faults of agents become data here: an unresolved task, or the reason of a stillborn child.
"""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dgm.archive.run import Run
from dgm.archive.snapshots import tree_id
from dgm.conduct import Bait, Secrets, is_telling_name
from dgm.config import Settings
from dgm.domain import (
    Action,
    ActionId,
    Born,
    CommitId,
    Cost,
    Digest,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Finding,
    Findings,
    Metrics,
    Outcome,
    Snapshot,
    Split,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.gateway.lease import DRY_RUN
from dgm.meta.evidence import conversation_text, manifest, program_end_of, prompts_text
from dgm.meta.operators import needs_of
from dgm.meta.prompts import load_frozen
from dgm.meta.rubric import RUBRIC, RubricJudge
from dgm.meta.similarity import AgentEdit, Judge
from dgm.meta.trajectories import TRACE
from dgm.meta.vetting import DryRuns, Vetting
from dgm.plugins import check_answer
from dgm.protocols import (
    Benchmark,
    Brief,
    Grade,
    HasConduct,
    HasEnvironments,
    InImage,
    Job,
    JobKind,
    Operator,
    Proposal,
    Work,
)
from dgm.search.prepare import AgentIndex, read_brief, read_notes_of
from dgm.worker.conduct import apply_conduct, inspect_work
from dgm.worker.leaving import fit_patch, format_left_out
from dgm.worker.session import Session
from dgm.worker.workbench import Allowance, SandboxWorkbench

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """All that performing an action needs; any number of actions may be under way."""

    run: Run
    session: Session
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    settings: Settings
    index: AgentIndex
    """The agents with which a child is compared."""

    async def perform(self, action: ActionId, what: Action) -> Outcome:
        """Perform one action, which was started in the run's log.

        Raises:
            Infrastructure: an expansion could not be performed; an evaluation returns ``invalid`` instead.
        """
        return await (
            evaluate(self, action, what) if isinstance(what, Evaluate) else expand(self, action, what)
        )

    def open_bench(
        self, action: ActionId, role: str | None = None, allowance: Allowance | None = None
    ) -> SandboxWorkbench:
        """Return a fresh workbench for an action; void answers are not served again."""
        return self.session.open_bench(action, role, allowance, self.run.tree.void_calls(action))

    def keep(self, data: bytes) -> Digest:
        """Store a trace for an event to name; cut out the middle of a long one."""
        return self.run.traces.put(data, self.settings.limits.patch_bytes)

    def keep_uncut(self, data: bytes) -> Digest:
        """Store a trace that is read back as JSON, uncut so that it stays readable."""
        return self.run.traces.put(data, limit=None)

    def usage(self, action: ActionId) -> Usage:
        """Return the usage of the action's model calls so far, over all its tries."""
        return self.run.tree.spend_of(action)


def commit_seed(run: Run, source: Snapshot, name: str = "") -> Born:
    """Commit an agent without parents, and return its birth; ``name`` tells one of several roots from the others."""
    clean: dict[str, Entry] = {path: entry for path, entry in source.items() if "__pycache__" not in path}
    subject = f"{Path(name).name}: one of the agents" if name else "the agent"
    return Born((), "seed", run.repository.commit(clean, ()), f"{subject} that the search starts from")


PROBE = "probe"
"""Role of model calls that a child makes before it is born."""

PassStages = Callable[[Proposal, Brief, SandboxWorkbench, dict[str, Digest]], Awaitable[str]]
"""Passes a proposal through all stages and returns its ``syntax_key``; the traces are added to the last argument."""


async def expand(worker: Worker, action: ActionId, what: Expand) -> Born | Stillborn:
    """Make and vet one child, and commit it.

    Raises:
        Infrastructure: the expansion could not be performed.
    """
    began = time.monotonic()
    traces: dict[str, Digest] = {}
    findings: dict[Finding, None] = {}
    try:
        proposal, syntax = await _make_and_vet(worker, action, what, traces, findings)
        parents = [worker.run.tree.agents[parent].commit for parent in what.parents]
        commit = await asyncio.to_thread(worker.run.repository.commit, proposal.source, parents)
    except AgentFault as fault:
        if fault.output:
            traces["output"] = await asyncio.to_thread(worker.keep, fault.output)
        cost = Cost(worker.usage(action), time.monotonic() - began, traces)
        failed = (what.parents, what.operator, fault.stage, str(fault), cost)
        return Stillborn(*failed, cause=fault.cause, findings=tuple(findings))
    cost = Cost(worker.usage(action), time.monotonic() - began, traces)
    return Born(
        what.parents,
        what.operator,
        commit,
        proposal.rationale,
        cost,
        syntax,
        tuple(findings),
        proposal.predictions,
    )


async def _make_and_vet(
    worker: Worker,
    action: ActionId,
    what: Expand,
    traces: dict[str, Digest],
    findings: dict[Finding, None],
) -> tuple[Proposal, str]:
    run, settings = worker.run, worker.settings
    vetting = _prepare_vetting(worker, action, what, findings)
    needs = needs_of(worker.operators)[what.operator]
    brief = await asyncio.to_thread(read_brief, run, worker.benchmark, action, what, settings.evidence, needs)
    if brief.evidence:
        traces["evidence"] = await asyncio.to_thread(worker.keep_uncut, manifest(brief.evidence))
    bench = replace(worker.open_bench(action, allowance=Allowance(settings.limits)), findings=findings)
    proposal = await worker.operators[what.operator].make(brief, bench)
    check_answer(proposal, Proposal, f"operator '{what.operator}': make")
    traces["log"] = await asyncio.to_thread(worker.keep, proposal.log)
    if proposal.stated:
        traces["statement"] = await asyncio.to_thread(worker.keep, proposal.stated.encode())
    return proposal, await vetting(proposal, brief, bench, traces)


def _prepare_vetting(
    worker: Worker, action: ActionId, what: Expand, findings: dict[Finding, None]
) -> PassStages:
    """Return the vetting of a child, which is compared with the agents that there are when its expansion starts."""
    run, settings, limits = worker.run, worker.settings, worker.settings.limits
    start = run.store.starts_of_action(action)[-1][0]
    contents = worker.index.contents(start)
    syntax = worker.index.syntax(start) if settings.vetting.syntax else {}
    novelty = settings.gates.novelty
    siblings = worker.index.siblings(what.parents[0], start) if novelty != "off" else {}

    async def pass_stages(
        proposal: Proposal, brief: Brief, bench: SandboxWorkbench, traces: dict[str, Digest]
    ) -> str:
        # The judge and each probe have the limits of one action, whatever the cost of making the child. No reply that
        # the operator had is served again.
        judging = replace(bench, allowance=Allowance.of_vetting(limits), findings={})
        tries = itertools.count(1)

        async def probe(child: Snapshot, task: TaskId) -> Grade:
            number, probe_traces = next(tries), dict[str, Digest]()
            probing = replace(bench, role=PROBE, allowance=Allowance.of_vetting(limits), findings={})
            try:
                return await attempt_task(worker, probing, child, task, probe_traces)
            finally:
                traces.update({f"probe-{number}-{name}": digest for name, digest in probe_traces.items()})

        dry_bench = worker.open_bench(action, DRY_RUN)
        vetting = Vetting(
            child=proposal.source,
            parent=brief.parents[0].source,
            dry=DryRuns(dry_bench, worker.session.spec.image, limits.check_s),
            try_task=probe,
            probes=what.probes,
            known=lambda child: contents.get(_tree_of(child)),
            syntax=lambda: syntax,
            edits=lambda: edits_before(brief, siblings, run.repository.diff),
            limits=limits,
            vetting=settings.vetting,
            gates=settings.gates,
            judge=_open_judge(worker, judging) if novelty == "model" else None,
            secrets=lambda: read_secrets(worker.benchmark),
            findings=findings,
            on_misconduct=settings.conduct.on_misconduct,
        )
        try:
            return await vetting.run()
        finally:
            traces["vetting"] = await asyncio.to_thread(worker.keep_uncut, vetting.trace())

    return pass_stages


def read_secrets(benchmark: Benchmark) -> Secrets:
    """Return the texts of all tasks that no agent's source holds by chance; only the ids, if no more is known."""
    names = (task.id for split in Split for task in benchmark.tasks(split) if is_telling_name(task.id))
    return Secrets(names=frozenset(names)) | (
        benchmark.secrets() if isinstance(benchmark, HasConduct) else Secrets()
    )


def _tree_of(child: Snapshot) -> str:
    try:
        return tree_id(child)
    except UserError as error:  # the stage that checks this may be off
        raise AgentFault("patch", f"it is no folder of files: {error}") from error


def _open_judge(worker: Worker, bench: SandboxWorkbench) -> Judge:
    settings = worker.settings
    prompts = load_frozen(worker.run.config, str(worker.run.folder / "run.json"))
    return Judge(bench, prompts, settings.operators.retries, settings.evidence.prompt_chars)


def edits_before(
    brief: Brief, siblings: Mapping[str, CommitId], diff: Callable[[CommitId, CommitId], bytes]
) -> list[AgentEdit]:
    """Return the edits with which the child's edit of its first parent is compared: see the gate ``novelty``.

    For a child of several parents, return the siblings' edits only. Its changes from the other parents and from
    their ancestors are meant to be the same.

    Args:
        brief: of the operator.
        siblings: name → commit of each child of the first parent.
        diff: the patch from one commit to another.
    """
    parents = {parent.agent.commit for parent in brief.parents}
    first = brief.parents[0].agent.commit
    edits = [
        AgentEdit(name, diff(first, commit)) for name, commit in siblings.items() if commit not in parents
    ]
    shown = [] if len(parents) > 1 else [*brief.parents, *brief.members]
    return edits + [AgentEdit(f"agent {member.agent.id}", member.change) for member in shown if member.change]


TRACES_OF_A_TRY = ("patch", "log", "conversation", "prompts", TRACE, "circumstances", "tests", "failures")
"""Traces of a try; those of tries before the last one are kept under the try's number (``patch-1`` …)."""


async def evaluate(worker: Worker, action: ActionId, what: Evaluate) -> Evaluation:
    """Let an agent work on a task and grade its patch; ``invalid`` if the infrastructure failed."""
    began = time.monotonic()
    traces: dict[str, Digest] = {}
    commit = worker.run.tree.agents[what.agent].commit
    bench = worker.open_bench(action)
    try:
        source = await asyncio.to_thread(worker.run.repository.source, commit)
        grade = await attempt_task(worker, bench, source, what.task, traces)
    except AgentFault as fault:
        findings = tuple(bench.findings)
        grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0, findings=findings)
    except Infrastructure as error:
        grade = Grade(Verdict.INVALID, str(error), 0.0)
    seconds = time.monotonic() - began
    judging = Usage()
    if worker.settings.objective.rubric and grade.verdict is not Verdict.INVALID and not grade.findings:
        rubric, judging = await _judge_by_notes(worker, action, what, bench, traces)
        grade = replace(grade, metrics=(*grade.metrics, *rubric))
    # The judge is no cost of the agent's.
    cost = Cost(worker.usage(action) - judging, seconds, traces)
    graded = (what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score)
    return Evaluation(*graded, cost, grade.findings, grade.metrics)


async def _judge_by_notes(
    worker: Worker, action: ActionId, what: Evaluate, bench: SandboxWorkbench, traces: Mapping[str, Digest]
) -> tuple[Metrics, Usage]:
    """Return the rubric of an evaluation, and the usage of judging; no metric without notes or a readable answer."""
    notes = await asyncio.to_thread(read_notes_of, worker.run, [what.agent], action)
    if not notes or "conversation" not in traces:
        return (), Usage()
    conversation = await asyncio.to_thread(worker.run.traces.get, traces["conversation"])
    prompts = load_frozen(worker.run.config, str(worker.run.folder / "run.json"))
    judge = RubricJudge(bench, prompts, worker.settings.operators.retries)
    try:
        value = await judge.judge([note.text for note in notes], conversation)
    except (AgentFault, Infrastructure) as error:
        log.warning("action %d: no rubric: %s", action, error)
        return (), judge.usage
    return ((RUBRIC, value),), judge.usage


async def attempt_task(
    worker: Worker, bench: SandboxWorkbench, source: Snapshot, task_id: TaskId, traces: dict[str, Digest]
) -> Grade:
    """Let an agent work on a task, as often as the benchmark lets it try, and return the grade.

    Args:
        worker: of the run.
        bench: on which the agent works.
        source: of the agent.
        task_id: the task.
        traces: receives the traces, whatever the result.

    Raises:
        AgentFault: the agent's result cannot be used.
        Infrastructure: a sandbox or the model failed.
    """
    benchmark, limits, labels = worker.benchmark, worker.settings.limits, bench.spec.labels
    task = benchmark.task(task_id)
    start = await asyncio.to_thread(benchmark.workspace, task.id)
    packages = (
        await benchmark.environment(task.id, labels) if isinstance(benchmark, HasEnvironments) else None
    )
    job = Job(
        JobKind.SOLVE,
        task.prompt,
        source,
        start,
        task.image,
        task.workdir,
        limits.solve_limit_s(task.timeout_s),
        environment=packages,
    )
    tries = 0
    findings: Findings = ()
    while True:
        work = await bench.work(job)
        tries += 1
        if tries > 1 and not isinstance(start, InImage):
            # The grade is for all changes, not only those of the last try.
            total = await asyncio.to_thread(fit_patch, start, work.workspace, limits.patch_bytes)
            work = replace(work, patch=total.patch, left_out={**work.left_out, **total.left_out})
        await asyncio.to_thread(_keep_work, worker, work, traces)
        grade = await benchmark.grade(task.id, work.patch, labels)
        check_answer(grade, Grade, f"benchmark '{benchmark.name}': grade")
        traces["tests"] = await asyncio.to_thread(worker.keep, grade.log)
        traces["failures"] = await asyncio.to_thread(worker.keep, grade.shown)
        bait = benchmark.bait(task.id) if isinstance(benchmark, HasConduct) else Bait()
        findings = tuple(dict.fromkeys((*findings, *await asyncio.to_thread(inspect_work, work, bait))))
        # A workspace in the image cannot be restored as an agent left it.
        problem = "" if isinstance(start, InImage) else benchmark.again(task.id, grade, tries)
        if not problem:
            conduct = worker.settings.conduct.on_misconduct
            return apply_conduct(_note_circumstances(grade, work), findings, conduct)
        traces.update({f"{name}-{tries}": traces[name] for name in TRACES_OF_A_TRY if name in traces})
        job = replace(job, problem=problem, workspace=work.workspace)


def _note_circumstances(grade: Grade, work: Work) -> Grade:
    """Return the grade with a note on what kept the agent from a better one."""
    unsolved = grade.verdict is Verdict.UNRESOLVED
    notes = [
        f"the agent {work.completed.bad_end}" if unsolved and work.completed.bad_end else "",
        f"the agent lacked answers: {work.own_failure}" if unsolved and work.own_failure else "",
        format_left_out(work.left_out),
    ]
    note = "; ".join(filter(None, notes))
    return replace(grade, reason=f"{grade.reason} ({note})") if note else grade


def _keep_work(worker: Worker, work: Work, traces: dict[str, Digest]) -> None:
    completed, trajectory = work.completed, work.trajectory
    end = program_end_of(
        completed.exit_code, completed.timed_out, completed.output, work.threads, work.refused
    )
    threads = trajectory.threads if trajectory else work.threads
    traces["patch"] = worker.keep(work.patch)
    traces["log"] = worker.keep(completed.output)
    traces["conversation"] = worker.keep(conversation_text(threads).encode("utf-8", "replace"))
    traces["prompts"] = worker.keep(prompts_text(work.threads or threads).encode("utf-8", "replace"))
    # A try may write no trajectory; the one of the try before does not count for it.
    traces.pop(TRACE, None)
    if trajectory:
        traces[TRACE] = worker.keep_uncut(trajectory.data)
    traces["circumstances"] = worker.keep_uncut(json.dumps(asdict(end)).encode())

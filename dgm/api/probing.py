"""``probe`` and ``bisect``: agents of a run on probes, and the ancestor and the edit from which on an agent fails."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.analysis.agents import find_agent, trace_lineage
from dgm.api.arguments import SettingValues, assignments_of, model_of, split_engine
from dgm.api.evaluating import (
    MAX_ATTEMPTS,
    EvaluationChoice,
    EvaluationRequest,
    build_settings,
    contestant_of,
    make_request,
    prepare,
)
from dgm.api.evaluation_session import DONE, select_tasks
from dgm.api.report import check_is_search
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import Run
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.conduct import Bait
from dgm.config import Settings
from dgm.domain import Agent, Evaluate, Evaluation, Split, TaskId, Usage, Verdict
from dgm.errors import AgentFault, UserError
from dgm.evaluation.bisecting import Vote, count_further
from dgm.evaluation.bisecting import bisect as find_change
from dgm.evaluation.schedule import EvaluationPlan, EvaluationProgress, find_entered
from dgm.models.choose import names_by_role
from dgm.models.scripted import Script
from dgm.sandboxes.choose import choose as choose_engine
from dgm.sandboxes.engine_address import use_engine
from dgm.search.start import settings_of
from dgm.simulation import check_performed
from dgm.views.bisection import BisectionView
from dgm.views.probes import FOLDER, PROBES, AgentProbesView, Outcome, ProbeView, judge_attempt
from dgm.worker.agent_check import run_command

SUITE = "probes"
DIGEST_CHARS = 8
ATTEMPTS = 3
SKIPPED = 125
"""Exit code of a command that cannot tell, as in ``git bisect run``."""


def probe(
    run: str | Path,
    *agents: str | int,
    suite: str = SUITE,
    tasks: Sequence[str] = (),
    attempts: int = 1,
    model: str | Script | None = None,
    max_usd: float | None = None,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
) -> ProbeView:
    """Probe agents for insecure code: let them solve small neutral tasks, and try their solutions.

    A probe fails when a solution works and is unsafe; one that does not work says nothing. The results are
    recorded below the run; the same call again continues there and pays for nothing twice. Exits with 1 if a probe
    fails.

    Args:
        run: Name or folder of the run.
        agents: Ids, best, seed or starts of commits [default: best].
        suite: Name or folder of a suite of probes; canaries tempts to cheat.
        tasks: Only this probe; repeatable.
        attempts: Attempts per probe; more find rarer faults. One unsafe solution fails a probe.
        model: Model that the agents use [default: the run's].
        max_usd: Spending limit, earlier sessions included.
        settings: A setting such as workers=4 or sandbox=docker.
        allow_paid: Whether the model ``auto`` may stand for one that costs money.
        watcher: Is informed and asked on the way.

    Raises:
        UserError: what is wrong, before anything is spent.
        ArchiveBusy: another process is probing the same run.
        Infrastructure: a sandbox or a model failed before the first probe.
    """
    others, engines = split_engine(settings)
    chosen = EvaluationChoice(
        suite, None, tasks, attempts, model_of(model), max_usd, assignments=assignments_of(others)
    )
    watcher = watcher or Watcher(allow_paid=allow_paid)
    with use_engine(engines), Run.open(find_run(str(run), write=True)) as opened:
        _check_evaluable(opened)
        ids = dict.fromkeys(find_agent(opened, str(name)).id for name in agents or ("best",))
        members = [opened.tree.agents[agent] for agent in ids]
        return run_session(lambda: _probe(opened, members, chosen, watcher), watcher)


async def _probe(run: Run, agents: Sequence[Agent], chosen: EvaluationChoice, watcher: Watcher) -> ProbeView:
    session = await prepare(_make_probe_request(run, agents, chosen, watcher), watcher)
    with session.run:
        evaluation = session.view(await session.perform(watcher))
    views = [AgentProbesView.load(run, agent, session.run.folder) for agent in agents]
    return ProbeView(run=run.name, agents=tuple(views), evaluation=evaluation)


def _check_evaluable(run: Run) -> None:
    check_performed(run)
    check_is_search(run)
    check_unpacked(run.folder)


def _make_probe_request(
    run: Run, agents: Sequence[Agent], chosen: EvaluationChoice, watcher: Watcher, argument: str = "tasks"
) -> EvaluationRequest:
    """Return the evaluation of agents on a suite of probes, in a folder for this version of the suite.

    ``argument`` is the parameter that named the tasks.
    """
    suite = str(chosen.benchmark)
    benchmark = open_suite(suite, NoSandboxEngine())
    if not isinstance(benchmark, SuiteBenchmark):
        raise UserError(f"{suite} is no suite's folder, so its tasks cannot be probes", argument="suite")
    select_tasks(benchmark, None, chosen.tasks, argument)
    probes = dict[str, str]()
    for record in (benchmark.record(task.id) for split in Split for task in benchmark.tasks(split)):
        if record.bait == Bait():
            raise UserError(
                f"{suite}: task {record.id} is no probe: its task.toml has no table [canary]",
                argument="suite",
            )
        probes[record.id] = record.kind if record.bait.fails else record.bait.kind.value
    request = make_request(run, [contestant_of(run, agent) for agent in agents], chosen, watcher)
    version = benchmark.version.rpartition("-")[2][:DIGEST_CHARS]
    return replace(request, prefix=FOLDER + version, facts={PROBES: probes})


@dataclass(frozen=True, slots=True)
class LineageTrial:
    """A lineage whose members are tried on a task."""

    lineage: Sequence[Agent]
    task: TaskId
    attempts: int
    """Number that decides on a member at most; odd."""
    judge: Callable[[Evaluation], Vote]
    earlier: Sequence[Sequence[Vote]]
    """Attempts that the search itself recorded, member by member."""

    def read_votes(self, run: Run, progress: EvaluationProgress) -> Sequence[Sequence[Vote]]:
        """Return all attempts so far; one that the infrastructure failed too often says nothing."""
        votes = []
        for member, earlier in zip(self.lineage, self.earlier, strict=True):
            tried = find_entered(run, member.commit), self.task
            done = [item for what, item in progress.graded.items() if (what.agent, what.task) == tried]
            lost = [Vote.NONE for what in progress.abandoned if (what.agent, what.task) == tried]
            votes.append([*earlier, *map(self.judge, done), *lost])
        return votes

    def choose(self, run: Run, plan: EvaluationPlan, progress: EvaluationProgress) -> Iterable[Evaluate]:
        """Return the attempts that could decide on the next member at the earliest."""
        votes = self.read_votes(run, progress)
        wanted = find_change(votes, self.attempts).wanted
        if wanted is None:
            return ()
        entered = find_entered(run, self.lineage[wanted].commit)
        open_attempts = progress.missing(what for what in plan.wanted if what.agent == entered)
        return open_attempts[: count_further(votes[wanted], self.attempts)]


def judge_probe(attempt: Evaluation) -> Vote:
    """Return the vote of an attempt at a probe."""
    votes = {Outcome.SAFE: Vote.GOOD, Outcome.UNSAFE: Vote.BAD, Outcome.NO_ANSWER: Vote.NONE}
    return votes[judge_attempt(attempt)]


def bisect(
    run: str | Path,
    agent: str | int = "best",
    *,
    probe: str | None = None,
    task: str | None = None,
    command: str | None = None,
    suite: str | None = None,
    attempts: int | None = None,
    model: str | Script | None = None,
    max_usd: float | None = None,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
) -> BisectionView:
    """Find the first ancestor of an agent that fails, and the edit that made it.

    The lineage from the seed to the agent is halved again and again. Each decision is a majority of attempts, of which
    those that cannot change it are not made. The same call again continues where it ended and pays for nothing twice;
    only commands run again. Exits with 1 if the seed fails already, or the agent does not fail.

    Args:
        run: Name or folder of the run.
        agent: Id, best, cheapest, seed or the start of a commit.
        probe: Fails when a solution of this probe works and is unsafe.
        task: Fails when this task of the run's benchmark is not resolved.
        command: Fails when this shell command, in a sandbox with the agent's source as its folder, does not exit with
            0; 125 says nothing.
        suite: Name or folder of the suite that holds the probe [default: probes].
        attempts: Odd number of attempts that decide on an agent at most [default: 3; 1 for a command].
        model: Model that the agents use [default: the run's].
        max_usd: Spending limit, earlier sessions included.
        settings: A setting such as workers=4 or sandbox=docker.
        allow_paid: Whether the model ``auto`` may stand for one that costs money.
        watcher: Is informed and asked on the way.

    Raises:
        UserError: what is wrong, before anything is spent.
        ArchiveBusy: another process is bisecting or probing the same run.
        Infrastructure: a sandbox or a model failed.
    """
    criteria = {"probe": probe, "task": task, "command": command}
    named = [name for name, value in criteria.items() if value is not None]
    if len(named) != 1:
        count = "only one of them can be given" if named else "none is given"
        raise UserError(
            f"say what fails, by a probe, a task or a command: {count}", argument="".join(named[1:2])
        )
    for name, value, applies in (
        ("suite", suite, probe is not None),
        ("model", model, command is None),
        ("max_usd", max_usd, command is None),
    ):
        if value is not None and not applies:
            raise UserError(f"has no effect on a {named[0]}", argument=name)
    tries = attempts if attempts is not None else ATTEMPTS if command is None else 1
    if tries % 2 == 0 or not 1 <= tries < MAX_ATTEMPTS // 2:
        raise UserError(
            f"{tries} is no odd number below {MAX_ATTEMPTS // 2}, of which a majority decides",
            argument="attempts",
        )
    others, engines = split_engine(settings)
    names = [name for name in (probe, task) if name is not None]
    benchmark = None if probe is None else suite or SUITE
    chosen = EvaluationChoice(
        benchmark, None, names, 2 * tries, model_of(model), max_usd, assignments=assignments_of(others)
    )
    watcher = watcher or Watcher(allow_paid=allow_paid)
    with use_engine(engines), Run.open(find_run(str(run), write=True)) as opened:
        _check_evaluable(opened)
        lineage = trace_lineage(opened.tree, find_agent(opened, str(agent)).id)
        if command is not None:
            return run_session(
                lambda: _bisect_command(opened, lineage, command, tries, chosen, watcher), watcher
            )
        return run_session(lambda: _bisect_task(opened, lineage, tries, chosen, watcher), watcher)


async def _bisect_task(
    run: Run, lineage: Sequence[Agent], tries: int, chosen: EvaluationChoice, watcher: Watcher
) -> BisectionView:
    task = TaskId(chosen.tasks[0])
    if chosen.benchmark:
        criterion = f"probe {task}"
        request = _make_probe_request(run, lineage, chosen, watcher, "probe")
        trial = LineageTrial(lineage, task, tries, judge_probe, [()] * len(lineage))
    else:
        criterion = f"task {task}"
        contestants = [contestant_of(run, member) for member in lineage]
        request = replace(make_request(run, contestants, chosen, watcher), prefix="bisect")
        settings = request.settings
        benchmark = open_suite(settings.benchmark, NoSandboxEngine(), settings.benchmarks, settings.grading)
        select_tasks(benchmark, None, chosen.tasks, "task")
        earlier = read_earlier(run, settings, lineage, task)
        trial = LineageTrial(lineage, task, tries, lambda done: _vote(done.verdict), earlier)
    session = await prepare(replace(request, choose=trial.choose), watcher)
    with session.run:
        ending = await session.perform(watcher)
        votes = trial.read_votes(session.run, EvaluationProgress.read(session.run))
        spend = session.run.tree.spend
    return BisectionView.of(
        run, lineage, criterion, votes, find_change(votes, tries), ending, session.run.folder, spend
    )


def read_earlier(
    run: Run, settings: Settings, lineage: Sequence[Agent], task: TaskId
) -> Sequence[Sequence[Vote]]:
    """Return the search's own verdicts on a task, member by member; none if it lent them another model."""
    if names_by_role(settings)["solve"] != names_by_role(settings_of(run))["solve"]:
        return [()] * len(lineage)
    verdicts = [run.tree.verdict(member.id, task) for member in lineage]
    return [[_vote(verdict)] if verdict else [] for verdict in verdicts]


def _vote(verdict: Verdict) -> Vote:
    return Vote.GOOD if verdict is Verdict.RESOLVED else Vote.BAD


async def _bisect_command(
    run: Run,
    lineage: Sequence[Agent],
    command: str,
    tries: int,
    chosen: EvaluationChoice,
    watcher: Watcher,
) -> BisectionView:
    settings = build_settings(run, chosen, watcher)
    engine = choose_engine(settings.sandbox, settings)
    votes: list[list[Vote]] = [[] for _ in lineage]
    while (wanted := (state := find_change(votes, tries)).wanted) is not None:
        member = lineage[wanted]
        with watcher.step(f"running the command in the source of agent {member.id}"):
            try:
                code = (await run_command(run.source(member.id), command, engine, settings)).exit_code
            except AgentFault as fault:
                raise UserError(f"agent {member.id} cannot be laid out: {fault}") from fault
        votes[wanted].append(Vote.NONE if code == SKIPPED else Vote.BAD if code else Vote.GOOD)
    return BisectionView.of(run, lineage, f"command {command}", votes, state, DONE, None, Usage())

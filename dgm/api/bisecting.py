"""``bisect``: the first agent of a lineage that fails a probe, a task or a command, and the edit that made it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dgm import assemble
from dgm.analysis.agents import find_agent, trace_lineage
from dgm.analysis.budgets import Ending, Reason
from dgm.api.arguments import SettingValues
from dgm.api.evaluating import EvaluationChoice, build_settings, prepare
from dgm.api.evaluation_session import DONE, select_tasks
from dgm.api.probing import (
    ProbeSuite,
    choose_conditions,
    make_suite_request,
    open_searched,
    read_probe_suites,
)
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.durable import write_durably
from dgm.archive.run import Run
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.domain import Agent, Evaluate, Split, TaskId, Usage, Verdict
from dgm.errors import AgentFault, UserError
from dgm.evaluation.bisecting import Bisection, Majority, Vote
from dgm.evaluation.bisecting import bisect as find_change
from dgm.evaluation.probing import FOLDER, Outcome, find_failed_tests, judge_attempt
from dgm.evaluation.schedule import EvaluationPlan, EvaluationProgress, find_entered
from dgm.models.scripted import Script
from dgm.sandboxes.choose import choose as choose_engine
from dgm.sandboxes.engine_address import use_engine
from dgm.search.start import settings_of
from dgm.views.bisection import BisectionView
from dgm.worker.agent_check import run_command

ATTEMPTS = 3
COMMANDS = "bisect.json"
"""File in the run's folder: command → commit → exit codes of its attempts."""
SKIPPED = 125
"""Exit code of a command that cannot tell, as in ``git bisect run``."""
_OUTCOMES = {Outcome.SAFE: Vote.GOOD, Outcome.UNSAFE: Vote.BAD, Outcome.NO_ANSWER: Vote.NONE}
Votes = Mapping[int, Sequence[Vote]]
"""Member of the lineage, from 0 → its attempts."""


@dataclass(frozen=True, slots=True)
class LineageTrial:
    """A lineage whose members are tried on a task."""

    run: Run
    lineage: Sequence[Agent]
    task: TaskId
    majority: Majority
    is_probe: bool
    earlier: Votes
    """Attempts that the search itself recorded."""

    def read(self, folder: Path) -> tuple[Votes, Usage]:
        """Return all attempts that a folder has, if it is there, and what they cost."""
        if not (folder / "run.json").exists():
            return {number: self.earlier.get(number, ()) for number in range(len(self.lineage))}, Usage()
        with Run.open(folder) as trial_run:
            return self.read_votes(trial_run, EvaluationProgress.read(trial_run)), trial_run.tree.spend

    def read_votes(self, trial_run: Run, progress: EvaluationProgress) -> Votes:
        """Return all attempts so far; one that the infrastructure failed too often says nothing."""
        votes = dict[int, Sequence[Vote]]()
        for number, member in enumerate(self.lineage):
            entered = find_entered(trial_run, member.commit)
            done = [what for what in progress.graded if (what.agent, what.task) == (entered, self.task)]
            lost = [what for what in progress.abandoned if (what.agent, what.task) == (entered, self.task)]
            votes[number] = [
                *self.earlier.get(number, ()),
                *(self._vote(trial_run, progress, what) for what in done),
                *(Vote.NONE for _ in lost),
            ]
        return votes

    def _vote(self, trial_run: Run, progress: EvaluationProgress, what: Evaluate) -> Vote:
        evaluation = progress.graded[what]
        if self.is_probe:
            failed = find_failed_tests(trial_run, evaluation)
            return _OUTCOMES[judge_attempt(evaluation.verdict, failed, evaluation.findings)]
        return Vote.GOOD if evaluation.verdict is Verdict.RESOLVED else Vote.BAD

    def choose(self, run: Run, plan: EvaluationPlan, progress: EvaluationProgress) -> Iterable[Evaluate]:
        """Return the attempts that could decide on the next member at the earliest."""
        votes = self.read_votes(run, progress)
        wanted = find_state(votes, self.majority).wanted
        if wanted is None:
            return ()
        entered = find_entered(run, self.lineage[wanted].commit)
        open_attempts = [
            what for what in plan.wanted if what.agent == entered and not progress.has_ended(what)
        ]
        return open_attempts[: self.majority.count_further(votes[wanted])]


def find_state(votes: Votes, majority: Majority) -> Bisection:
    """Return how far a bisection is by the attempts at all members."""
    return find_change(len(votes), lambda member: majority.decide(votes[member]))


def bisect(
    run: str | Path,
    agent: str | int = "best",
    *,
    probe: str | None = None,
    task: str | None = None,
    command: str | None = None,
    suite: Sequence[str] = (),
    attempts: int | None = None,
    model: str | Script | None = None,
    max_usd: float | None = None,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
) -> BisectionView:
    """Find the first ancestor of an agent that fails, and the edit that made it.

    The lineage from the seed to the agent is halved again and again. Each decision is a majority of attempts, of which
    those that cannot change it are not made. The same call again continues where it ended and pays for nothing twice.
    Exits with 1 if the seed fails already, or the agent does not fail.

    Args:
        run: Name or folder of the run.
        agent: Id, best, seed or the start of a commit.
        probe: Fails when a solution of this probe works and is unsafe.
        task: Fails when this task of the run's benchmark is not resolved.
        command: Fails when this shell command, in a sandbox with the agent's source as its folder, does not exit with
            0; 125 says nothing.
        suite: Name or folder of the suite that holds the probe [default: the shipped ones].
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
    _check_criterion(probe, task, command, suite, model, max_usd)
    tries = attempts if attempts is not None else ATTEMPTS if command is None else 1
    if tries % 2 == 0:
        raise UserError(
            f"{tries} is even, so there may be no majority; use an odd number", argument="attempts"
        )
    chosen, engines = choose_conditions(2 * tries, model, max_usd, settings)
    watcher = watcher or Watcher(allow_paid=allow_paid)
    with use_engine(engines), open_searched(run) as opened:
        lineage = trace_lineage(opened.tree, find_agent(opened, str(agent)).id)
        majority = Majority(tries)
        if command is not None:
            return run_session(
                lambda: _bisect_command(opened, lineage, command, majority, chosen, watcher), watcher
            )
        if probe is not None:
            chosen_suite = read_probe_suites(suite, [probe], "probe")[0]
            trial = LineageTrial(opened, lineage, TaskId(probe), majority, is_probe=True, earlier={})
        else:
            chosen_suite = _read_benchmark(opened, str(task))
            earlier = {} if model else _read_verdicts(opened, lineage, TaskId(str(task)))
            trial = LineageTrial(
                opened, lineage, TaskId(str(task)), majority, is_probe=False, earlier=earlier
            )
        chosen = replace(chosen, tasks=[trial.task])
        return run_session(lambda: _bisect_task(trial, chosen_suite, chosen, watcher), watcher)


def _check_criterion(
    probe: str | None,
    task: str | None,
    command: str | None,
    suite: Sequence[str],
    model: object,
    max_usd: float | None,
) -> None:
    chosen = [
        name for name, value in (("probe", probe), ("task", task), ("command", command)) if value is not None
    ]
    if len(chosen) != 1:
        first = "only one of them can be given" if chosen else "none is given"
        raise UserError(
            f"say what fails, by a probe, a task or a command: {first}", argument="".join(chosen[1:2])
        )
    if suite and probe is None:
        raise UserError("has an effect only with a probe", argument="suite")
    for name, value in (("model", model), ("max_usd", max_usd)):
        if value is not None and command is not None:
            raise UserError("has no effect on a command: no model is called", argument=name)


def _read_benchmark(run: Run, task: str) -> ProbeSuite:
    settings = settings_of(run)
    benchmark = open_suite(settings.benchmark, NoSandboxEngine(), settings.benchmarks, settings.grading)
    select_tasks(benchmark, None, [task], "task")
    assemble.check_benchmark(run, assemble.RunParts(NoSandboxEngine(), benchmark))
    tasks = [str(known.id) for split in Split for known in benchmark.tasks(split)]
    return ProbeSuite(benchmark, dict.fromkeys(tasks, ""), settings.benchmark)


def _read_verdicts(run: Run, lineage: Sequence[Agent], task: TaskId) -> Votes:
    verdicts = {number: run.tree.verdict(member.id, task) for number, member in enumerate(lineage)}
    return {
        number: [Vote.GOOD if verdict is Verdict.RESOLVED else Vote.BAD]
        for number, verdict in verdicts.items()
        if verdict is not None
    }


async def _bisect_task(
    trial: LineageTrial, suite: ProbeSuite, chosen: EvaluationChoice, watcher: Watcher
) -> BisectionView:
    agents = [member.id for member in trial.lineage]
    request = make_suite_request(
        trial.run, agents, suite, chosen, watcher, FOLDER if trial.is_probe else "bisect-"
    )
    request = replace(request, choose=trial.choose, facts=request.facts if trial.is_probe else {})
    folder, ending = request.folder(suite.benchmark.name), DONE
    votes, spend = trial.read(folder)
    if find_state(votes, trial.majority).wanted is not None:
        session = await prepare(request, watcher)
        with session.run:
            ending = await session.perform(watcher)
        votes, spend = trial.read(folder)
    criterion, state = (
        f"{'probe' if trial.is_probe else 'task'} {trial.task}",
        find_state(votes, trial.majority),
    )
    return BisectionView.of(trial.run, trial.lineage, criterion, votes, state, ending, folder, spend)


async def _bisect_command(
    run: Run,
    lineage: Sequence[Agent],
    command: str,
    majority: Majority,
    chosen: EvaluationChoice,
    watcher: Watcher,
) -> BisectionView:
    if not command.strip():
        raise UserError(
            "is empty; give a shell command such as 'python3 -m agent --check'", argument="command"
        )
    settings = build_settings(run, chosen, watcher)
    file, engine = run.folder / COMMANDS, None
    known: dict[str, dict[str, list[int]]] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    codes = known.setdefault(command, {})
    while True:
        votes = {
            n: [_vote_of_code(c) for c in codes.get(member.commit, ())] for n, member in enumerate(lineage)
        }
        state = find_state(votes, majority)
        if state.wanted is None:
            break
        engine = engine or choose_engine(settings.sandbox, settings)
        member = lineage[state.wanted]
        with watcher.step(f"running the command in the source of agent {member.id}"):
            try:
                done = await run_command(run.source(member.id), command, engine, settings)
            except AgentFault as fault:
                raise UserError(f"agent {member.id} cannot be laid out: {fault}") from fault
        codes.setdefault(member.commit, []).append(done.exit_code)
        write_durably(file, json.dumps(known, indent=1).encode() + b"\n")
    ending = Ending(Reason.NOTHING_LEFT, "every decision is made")
    return BisectionView.of(run, lineage, f"command {command}", votes, state, ending, file, Usage())


def _vote_of_code(code: int) -> Vote:
    return Vote.NONE if code == SKIPPED else Vote.BAD if code else Vote.GOOD

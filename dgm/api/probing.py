"""``probe``: agents of a run on suites of probes, whose solutions are tried for insecure code."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.analysis.agents import find_agent
from dgm.api.arguments import (
    SettingValues,
    assignments_of,
    check_amount,
    model_of,
    split_engine,
)
from dgm.api.evaluating import (
    MAX_ATTEMPTS,
    Contestant,
    EvaluationChoice,
    EvaluationRequest,
    contestant_of,
    make_request,
    prepare,
)
from dgm.api.evaluation_session import make_slug, select_tasks
from dgm.api.report import check_is_search
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import Run
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.conduct import Bait
from dgm.config import BenchmarksSettings
from dgm.domain import AgentId, Split, Usage
from dgm.errors import Hint, UserError
from dgm.evaluation.probing import FOLDER, PROBES, SAFETY, ProbeAttempts, read_attempts
from dgm.evaluation.schedule import find_entered
from dgm.models.scripted import Script
from dgm.protocols import Benchmark
from dgm.sandboxes.engine_address import use_engine
from dgm.simulation import check_performed
from dgm.views.evaluation import EvaluationView
from dgm.views.probes import AgentProbesView, ProbeView
from dgm.views.values import UsageView

SUITES = ("probes", "canaries")
"""The shipped suites of probes."""
DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class ProbeSuite:
    """A suite of probes as it is read before anything is evaluated."""

    benchmark: Benchmark
    probes: Mapping[str, str]
    """All probes of the suite → what each looks for."""
    name: str
    """Name or path, as the user gave it."""


def probe(
    run: str | Path,
    *agents: str | int,
    suite: Sequence[str] = (),
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
        suite: Name or folder of a suite of probes; repeatable [default: all shipped ones].
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
    chosen, engines = choose_conditions(attempts, model, max_usd, settings, tasks)
    watcher = watcher or Watcher(allow_paid=allow_paid)
    with use_engine(engines), open_searched(run) as opened:
        ids = dict.fromkeys(find_agent(opened, str(name)).id for name in agents or ("best",))
        return run_session(lambda: _probe(opened, [*ids], suite, chosen, watcher), watcher)


def choose_conditions(
    attempts: int,
    model: str | Script | None,
    max_usd: float | None,
    settings: SettingValues | None,
    tasks: Sequence[str] = (),
) -> tuple[EvaluationChoice, Sequence[str]]:
    """Return the conditions of an evaluation on all splits, and the addresses of the engine.

    Raises:
        UserError: one is out of bounds.
    """
    check_amount("max_usd", max_usd)
    if not 1 <= attempts <= MAX_ATTEMPTS:
        raise UserError(f"{attempts} is not from 1 to {MAX_ATTEMPTS}", argument="attempts")
    others, engines = split_engine(settings)
    chosen = EvaluationChoice(
        split=None,
        tasks=tasks,
        attempts=attempts,
        model=model_of(model),
        max_usd=max_usd,
        assignments=assignments_of(others),
    )
    return chosen, engines


def open_searched(run: str | Path) -> Run:
    """Return a search, open to read, whose agents can be evaluated; the caller closes it.

    Raises:
        UserError: there is none, or it is simulated, packed, or without an agent.
    """
    opened = Run.open(find_run(str(run), write=True))
    try:
        check_performed(opened)
        check_is_search(opened)
        check_unpacked(opened.folder)
    except BaseException:
        opened.close()
        raise
    return opened


async def _probe(
    run: Run, agents: Sequence[AgentId], names: Sequence[str], chosen: EvaluationChoice, watcher: Watcher
) -> ProbeView:
    suites = read_probe_suites(names, chosen.tasks)
    evaluations, model, spend = list[EvaluationView](), "", Usage()
    attempts = defaultdict[AgentId, list[ProbeAttempts]](list)
    for suite in suites:
        if chosen.max_usd is not None and spend.usd >= chosen.max_usd:
            raise UserError(
                f"the probes have cost {spend.usd:.4f} USD, of {chosen.max_usd}", argument="max_usd"
            )
        limit = None if chosen.max_usd is None else chosen.max_usd - spend.usd
        session = await prepare(
            make_suite_request(run, agents, suite, replace(chosen, max_usd=limit), watcher), watcher
        )
        with session.run:
            evaluations.append(session.view(await session.perform(watcher)))
            model, spend = session.model, spend + session.run.tree.spend
            for agent in agents:
                entered = find_entered(session.run, run.tree.agents[agent].commit)
                assert entered is not None
                attempts[agent] += read_attempts(session.run, entered)
        if evaluations[-1].missing:
            break
    return ProbeView(
        run=run.name,
        model=model,
        attempts=chosen.attempts,
        agents=tuple(AgentProbesView.of(agent, attempts[agent]) for agent in agents),
        evaluations=tuple(evaluations),
        spend=UsageView.of(spend),
    )


def read_probe_suites(
    names: Sequence[str], tasks: Sequence[str], argument: str = "tasks"
) -> Sequence[ProbeSuite]:
    """Return the suites of probes that hold the named tasks; all of them without a task.

    Args:
        names: names or folders of suites; empty: the shipped ones.
        tasks: names of probes.
        argument: the parameter that named them.

    Raises:
        UserError: a suite is none of probes, or no suite has a task.
    """
    suites = [_read_suite(name) for name in names or [name for name in SUITES if name in suite_names()]]
    for task in tasks:
        if not any(task in suite.probes for suite in suites):
            if len(suites) == 1:
                select_tasks(suites[0].benchmark, None, [task], argument)
            names_of_suites = " or ".join(suite.benchmark.name for suite in suites)
            raise UserError(
                f"no probe {task!r} in {names_of_suites}",
                argument=argument,
                hint=Hint("all probes", "benchmark show", (suites[0].name,)),
            )
    return [suite for suite in suites if not tasks or {*tasks} & suite.probes.keys()]


def _read_suite(name: str) -> ProbeSuite:
    benchmark = open_suite(name, NoSandboxEngine(), BenchmarksSettings())
    if not isinstance(benchmark, SuiteBenchmark):
        raise UserError(f"{name} is no suite's folder, so its tasks cannot be probes", argument="suite")
    records = [benchmark.record(task.id) for split in Split for task in benchmark.tasks(split)]
    probes = dict[str, str]()
    for record in records:
        is_canary = record.bait != Bait()
        if not is_canary and not any(SAFETY in test for test in record.tests.files):
            raise UserError(
                f"{name}: task {record.id} is no probe: it has neither a hidden {SAFETY}.py nor a table [canary]",
                argument="suite",
            )
        probes[str(record.id)] = record.bait.kind.value if is_canary else record.kind
    return ProbeSuite(benchmark, probes, name)


def make_suite_request(
    run: Run,
    agents: Sequence[AgentId],
    suite: ProbeSuite,
    chosen: EvaluationChoice,
    watcher: Watcher,
    prefix: str = FOLDER,
) -> EvaluationRequest:
    """Return the evaluation of agents of a run on a suite of probes.

    Its folder is named after everything that all of its sessions have in common.

    Args:
        run: the search.
        agents: the agents.
        suite: the suite; of the chosen tasks only those that it has are tried.
        chosen: the conditions.
        watcher: is asked about a model that costs money.
        prefix: beginning of the folder's name.

    Raises:
        ConsentNeeded, UserError: as ``make_request``.
    """
    version = suite.benchmark.version.rpartition("-")[2]
    words = [suite.benchmark.name, version[:DIGEST_CHARS], *([chosen.model] if chosen.model else [])]
    chosen = replace(
        chosen,
        benchmark=suite.name,
        tasks=[task for task in chosen.tasks if task in suite.probes],
        into=run.folder / (prefix + "-".join(map(make_slug, words))),
    )
    contestants: list[Contestant] = [contestant_of(run, run.tree.agents[agent]) for agent in agents]
    request = make_request(run, contestants, chosen, watcher)
    return replace(request, facts={PROBES: dict(suite.probes)})

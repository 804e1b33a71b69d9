"""``probe``: agents of a run on a suite of probes, whose solutions are tried for insecure code."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dgm.analysis.agents import find_agent
from dgm.api.arguments import SettingValues, assignments_of, model_of, split_engine
from dgm.api.evaluating import EvaluationChoice, EvaluationRequest, contestant_of, make_request, prepare
from dgm.api.evaluation_session import select_tasks
from dgm.api.report import check_is_search
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import Run
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.conduct import SAFETY, Bait
from dgm.domain import Agent, Split
from dgm.errors import UserError
from dgm.models.scripted import Script
from dgm.sandboxes.engine_address import use_engine
from dgm.simulation import check_performed
from dgm.views.probes import FOLDER, PROBES, AgentProbesView, ProbeView

SUITE = "probes"
DIGEST_CHARS = 8


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
        check_evaluable(opened)
        ids = dict.fromkeys(find_agent(opened, str(name)).id for name in agents or ("best",))
        members = [opened.tree.agents[agent] for agent in ids]
        return run_session(lambda: _probe(opened, members, chosen, watcher), watcher)


async def _probe(run: Run, agents: Sequence[Agent], chosen: EvaluationChoice, watcher: Watcher) -> ProbeView:
    session = await prepare(make_probe_request(run, agents, chosen, watcher), watcher)
    with session.run:
        evaluation = session.view(await session.perform(watcher))
    views = [AgentProbesView.load(run, agent, session.run.folder) for agent in agents]
    return ProbeView(run=run.name, agents=tuple(views), evaluation=evaluation)


def check_evaluable(run: Run) -> None:
    """Make sure that agents of a run can be evaluated below it.

    Raises:
        UserError: it is simulated, packed, or no search.
    """
    check_performed(run)
    check_is_search(run)
    check_unpacked(run.folder)


def make_probe_request(
    run: Run, agents: Sequence[Agent], chosen: EvaluationChoice, watcher: Watcher, argument: str = "tasks"
) -> EvaluationRequest:
    """Return the evaluation of agents of a run on a suite of probes, in a folder for this version of the suite.

    ``argument`` is the parameter that named the tasks.

    Raises:
        ConsentNeeded: as ``make_request``.
        UserError: the suite has another task than probes, or not the named ones; or as ``make_request``.
    """
    suite = str(chosen.benchmark)
    benchmark = open_suite(suite, NoSandboxEngine())
    if not isinstance(benchmark, SuiteBenchmark):
        raise UserError(f"{suite} is no suite's folder, so its tasks cannot be probes", argument="suite")
    select_tasks(benchmark, None, chosen.tasks, argument)
    probes = dict[str, str]()
    for record in (benchmark.record(task.id) for split in Split for task in benchmark.tasks(split)):
        is_canary = record.bait != Bait()
        if not is_canary and not any(SAFETY in test for test in record.tests.files):
            raise UserError(
                f"{suite}: task {record.id} is no probe: it has neither a hidden {SAFETY}.py nor a table [canary]",
                argument="suite",
            )
        probes[record.id] = record.bait.kind.value if is_canary else record.kind
    request = make_request(run, [contestant_of(run, agent) for agent in agents], chosen, watcher)
    version = benchmark.version.rpartition("-")[2][:DIGEST_CHARS]
    return replace(request, prefix=FOLDER + version, facts={PROBES: probes})

"""Promotion: rounds that certify an agent to be better than the one certified before, and checks of certificates.

A round that was begun is finished before another one begins, by ``promote`` or by the search that it is a gate of. So a
round costs its part of alpha once, however often its evaluations are interrupted.
"""

import logging
import platform
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dgm import assemble
from dgm.analysis.agents import best_of, find_agent
from dgm.analysis.budgets import Ending, Reason
from dgm.api.arguments import check_amount, check_workers
from dgm.api.report import OpenRun, check_target
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.durable import write_durably
from dgm.archive.events import PromotionDecided, PromotionSpent, PromotionStarted, RunStarted
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import Run, RunKind
from dgm.archive.snapshots import tree_id
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.config import Settings
from dgm.domain import SEED, AgentId, Budget, Evaluate, Split, Usage
from dgm.errors import UserError
from dgm.evaluation.certificate import (
    Certificate,
    DoesNotHold,
    build_certificate,
    check_agent,
    check_logs,
    check_suite,
    read_certificate,
    write_certificate,
)
from dgm.evaluation.promotion import FOLDER, choose_accepted, choose_candidates, compute_p_values, level_of
from dgm.evaluation.schedule import EvaluationProgress, Schedule, enter_agent, first_attempts
from dgm.meta.seeds import read_seed
from dgm.models.choose import names_by_role
from dgm.render import fmt
from dgm.search.loop import perform_until_stopped
from dgm.search.start import check_models, note_checks, require_consent, settings_of
from dgm.simulation import check_performed
from dgm.stats import promotion_level
from dgm.views.probes import AgentProbesView
from dgm.views.promotion import CertificateView, Outcome, PromotionsView, PromotionView

log = logging.getLogger(__name__)

OF_AGENTS = ("calls", "tokens", "usd", "output_tokens", "solve_s", "time_factor")
"""Limits that an agent's verdict depends on."""
CERTIFICATES = "certificates"
"""Folder of a run's certificates in the run's."""


def promote(
    *run_and_agents: str | Path | OpenRun,
    max_usd: float | None = None,
    workers: int | None = None,
    certificate: str | Path | None = None,
    verify: str | Path | None = None,
    benchmark: str | Path | None = None,
    agent: str | Path | None = None,
    watcher: Watcher | None = None,
) -> PromotionView | CertificateView:
    """Perform a round of promotion: is the best agent better than the one that was promoted last?

    Each round makes the tests of later ones stricter, so ask when there is a new best agent. Without one, nothing
    happens. A round that was interrupted is continued.

    Args:
        run_and_agents: A run, and candidates (default: its best agent).
        max_usd: Limit on the cost of this session (default: the rest of the run's).
        workers: Parallel evaluations (default: the run's).
        certificate: Also write the certificate of a promotion to this file.
        verify: Check this certificate instead, without keys; if a run is named, also with its logs.
        benchmark: With --verify: compare it with the suite that it was made on.
        agent: With --verify: compare the promoted agent with the files in this folder.
        watcher: is informed.

    Raises:
        UserError: the run has no promotion tasks, an agent cannot be a candidate, or there is no certificate.
        Infrastructure: a model does not answer now.
    """
    performing = {"max_usd": max_usd, "workers": workers, "certificate": certificate}
    for name, value in ({"benchmark": benchmark, "agent": agent} if verify is None else performing).items():
        if value is not None:
            raise UserError(f"has an effect only with{'' if verify is None else 'out'} verify", argument=name)
    if verify is not None:
        if len(run_and_agents) > 1:
            raise UserError("a certificate is compared with one run", argument="verify")
        return _verify(Path(verify), next(iter(run_and_agents), None), benchmark, agent)
    check_amount("max_usd", max_usd)
    check_workers(workers)
    target = None if certificate is None else Path(certificate)
    if target:
        check_target(target, "certificate")
    if not run_and_agents:
        raise UserError("name a run")
    run, *agents = run_and_agents
    watcher = watcher or Watcher()
    with Run.open(_find(run, write=True), write=True) as search:
        check_unpacked(search.folder)
        check_performed(search)
        if search.kind is not RunKind.SEARCH:
            raise UserError(f"{search.name} is no search; name the search whose agents are to be promoted")
        before, names = len(search.tree.promotions.accepted), [str(name) for name in agents]
        ending = run_session(lambda: _promote(search, names, watcher, max_usd, workers), watcher)
        file = _write_certificates(search)
        if target and file:
            write_durably(target, file.read_bytes())
        outcome = Outcome.NOTHING_NEW if ending is None else Outcome.UNFINISHED
        if answers := search.tree.promotions.accepted[before:]:
            outcome = Outcome.NOT_YET if answers[0] is None else Outcome.ACCEPTED
        return PromotionView(
            run=search.name,
            outcome=outcome,
            promotions=PromotionsView.load(search),
            gain=read_certificate(file).test["gain"] if file and outcome is Outcome.ACCEPTED else None,
            certificate=file,
            ending=ending.message if ending else "",
            exit_code=0 if ending is None else 3 if ending.reason is Reason.LIMIT else 1,
        )


def _verify(
    file: Path, run: str | Path | OpenRun | None, benchmark: str | Path | None, agent: str | Path | None
) -> CertificateView:
    checked = ["itself"]
    try:
        content = read_certificate(file)
        if benchmark is not None:
            suite = open_suite(str(benchmark), NoSandboxEngine())
            check_suite(content, suite.version, [task.id for task in suite.tasks(Split.PROMOTION)])
            checked.append(f"suite {suite.name}")
        if agent is not None:
            check_agent(content, tree_id(read_seed(str(agent))))
            checked.append("the agent's files")
        if run is not None:
            with Run.open(_find(run)) as search:
                check_logs(content, _build(search, content.test["round"]))
            checked.append(f"run {search.name}")
    except DoesNotHold as error:
        return CertificateView(file=file, problem=error.problem)
    facts = msgspec.to_builtins(replace(content, verdicts=()))
    return CertificateView(file=file, holds=True, checked=tuple(checked), certificate=facts)


def _find(run: str | Path | OpenRun, *, write: bool = False) -> Path:
    return find_run(str(run if isinstance(run, str | Path) else run.folder), write=write)


def _build(search: Run, number: int) -> Certificate:
    if not (search.folder / FOLDER / "run.json").exists():
        raise DoesNotHold(f"run {search.name} has no promotion evaluations")
    with Run.open(search.folder / FOLDER) as promotion:
        return build_certificate(search, promotion, number)


def find_obstacle(run: Run, candidates: Sequence[AgentId], tasks: int, settings: Settings) -> str:
    """Return why a round with these candidates on so many tasks must not begin, in one line; empty if it may."""
    promotions = run.tree.promotions
    alpha, limit = _rules(run, settings)
    if len(candidates) > limit:
        return f"a round of this run has at most {fmt.count(limit, 'candidate')}"
    for agent in candidates:
        if agent == promotions.incumbent:
            return f"agent {agent} is the incumbent, with which candidates are compared"
        if agent in promotions.rejected:
            return f"agent {agent} was not accepted before; on the same tasks a later round cannot accept it"
        if failed := AgentProbesView.load(run, run.tree.agents[agent]).failed:
            return f"agent {agent} fails the probe {failed[0]}, so it must not be promoted"
    level = promotion_level(alpha, len(promotions.rounds) + 1, promotions.count, limit)
    if 0.5**tasks > level:
        few = fmt.count(tasks, "promotion task")
        return f"with {few} no result reaches this round's level of {level:.2g}; it takes a suite with more"
    return ""


async def perform_due_round(
    run: Run, settings: Settings, parts: assemble.RunParts, watcher: Watcher
) -> Ending | None:
    """Perform the round of a search that was begun or is due; return why it could not be finished, else None.

    A round that is due is skipped if there is no new best agent, no money, or another model than in earlier rounds.
    """
    every, tree = settings.promotion.every, run.tree
    if (every or tree.promotions.open) and (change := _find_change(run, settings, parts)):
        log.warning("%s: no round of promotion: %s", run.name, change)
        return None
    if tree.promotions.open is None:
        if not every or tree.evaluations // every <= tree.promotions.evaluations // every:
            return None
        candidates = choose_candidates(tree, tree.promotions, best_of(run), _rules(run, settings)[1])
        tasks = len(parts.benchmark.tasks(Split.PROMOTION))
        if not candidates or find_obstacle(run, candidates, tasks, settings) or _is_spent(run):
            return None
        _begin_round(run, candidates, settings)
    ending = await _perform_round(run, settings, parts, watcher)
    _write_certificates(run)
    return ending


async def _promote(
    run: Run, names: Sequence[str], watcher: Watcher, max_usd: float | None, workers: int | None
) -> Ending | None:
    settings = settings_of(run)
    if workers is not None:
        settings = settings.model_copy(update={"workers": workers})
    agents = tuple(dict.fromkeys(find_agent(run, name).id for name in names))
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": run.config["sandbox"]}))
    assemble.check_benchmark(run, parts)
    tasks = len(parts.benchmark.tasks(Split.PROMOTION))
    if not tasks:
        raise UserError(f"benchmark {parts.benchmark.name} has no promotion tasks")
    if change := _find_change(run, settings, parts):
        raise UserError(f"{run.name}: {change}")
    current = run.tree.promotions.open
    if current is not None and agents not in ((), current.candidates):
        others = ", ".join(map(str, current.candidates))
        raise UserError(
            f"round {current.number} with agent {others} is not finished; finish it without naming agents"
        )
    if current is None:
        best = find_agent(run, "best").id
        chosen = agents or choose_candidates(run.tree, run.tree.promotions, best, _rules(run, settings)[1])
        if not chosen:
            return None
        if obstacle := find_obstacle(run, chosen, tasks, settings):
            raise UserError(obstacle, argument="agents" if agents else "")
    if max_usd is None and _is_spent(run):
        raise UserError("the run's limit is spent; give the round money of its own", argument="max_usd")
    require_consent(run, settings)
    checks = await check_models(settings, run.tree.model_facts.abilities)
    watcher.models_checked(settings, checks)
    if current is None:
        _begin_round(run, chosen, settings)
    with _open_promotion(run, settings, parts) as promotion:
        note_checks(promotion, settings, checks)
    return await _perform_round(run, settings, parts, watcher, usd=max_usd)


def _rules(run: Run, settings: Settings) -> tuple[float, int]:
    """Return alpha and the largest number of candidates: of the first round, else of the settings."""
    chosen = settings.promotion
    return next(
        ((first.alpha, first.limit) for first in run.tree.promotions.rounds),
        (chosen.alpha, chosen.candidates),
    )


def _is_spent(run: Run) -> bool:
    tree = run.tree
    limits = (tree.budget.usd, tree.spend.usd), (tree.budget.tokens, tree.spend.tokens)
    return any(limit is not None and used >= limit for limit, used in limits)


def _begin_round(run: Run, candidates: Sequence[AgentId], settings: Settings) -> None:
    promotions = run.tree.promotions
    number = len(promotions.rounds) + 1
    run.append(PromotionStarted(number, promotions.incumbent, tuple(candidates), *_rules(run, settings)))


def _open_promotion(run: Run, settings: Settings, parts: assemble.RunParts) -> Run:
    folder = run.folder / FOLDER
    if (folder / "run.json").exists():
        return Run.open(folder, write=True)
    return Run.create(folder, {**assemble.record_of(folder, settings, parts), "kind": RunKind.PROMOTION})


def _find_change(run: Run, settings: Settings, parts: assemble.RunParts) -> str:
    """Return why verdicts would not compare with those of earlier rounds, in one line; empty if they would."""
    folder = run.folder / FOLDER
    if not (folder / "run.json").exists():
        return ""
    with Run.open(folder) as promotion:
        then, version = settings_of(promotion), promotion.config["versions"]["benchmark"]
    model, now = names_by_role(then)["solve"], names_by_role(settings)["solve"]
    other = [name for name in OF_AGENTS if getattr(then.limits, name) != getattr(settings.limits, name)]
    if version != parts.benchmark.version:
        return "another dgm graded its promotion tasks; go on with that one"
    if model != now:
        return f"its promotion tasks were graded with {model}, so verdicts with {now} would not compare"
    if other:
        return (
            f"its promotion tasks were graded with another limits.{other[0]}, so verdicts would not compare"
        )
    return ""


async def _perform_round(
    run: Run,
    settings: Settings,
    parts: assemble.RunParts,
    watcher: Watcher,
    *,
    usd: float | None = None,
) -> Ending | None:
    """Perform what is missing of the round that was begun, and decide it; return why not, None if it is decided.

    The watcher hears of the round, not of its verdicts. ``usd`` limits the cost from now on, by default the rest of the
    run's limit. Requests to stop are those for the run.
    """
    started = run.tree.promotions.open
    assert started is not None, "a round was begun"
    tasks = tuple(task.id for task in parts.benchmark.tasks(Split.PROMOTION))
    with _open_promotion(run, settings, parts) as promotion:
        try:
            _charge(run, promotion, settings)
            for agent in (SEED, started.incumbent, *started.candidates):
                enter_agent(promotion, run, run.tree.agents[agent])
            budget = _limit_round(run, promotion, usd)
            resumed = promotion.tree.evaluations > 0
            promotion.append(RunStarted(budget, tasks, resumed=resumed, kernel=platform.release()))
            if missing := _find_missing(promotion):
                words = f"round {started.number} of promotion: {fmt.count(len(missing), 'evaluation')} to do"
                opening = assemble.search(
                    promotion, settings, parts, lambda _: None, Schedule(first_attempts)
                )
                with watcher.step(words):
                    ending = await perform_until_stopped(run, opening, watcher.begins)
                if _find_missing(promotion):
                    return ending
        finally:
            _charge(run, promotion, settings)
        p_values = compute_p_values(promotion, run, started)
    accepted = choose_accepted(p_values, level_of(run.tree.promotions, started))
    run.append(PromotionDecided(started.number, accepted))
    return None


def _find_missing(promotion: Run) -> Sequence[Evaluate]:
    return EvaluationProgress.read(promotion).missing(first_attempts(promotion.tree))


def _limit_round(run: Run, promotion: Run, usd: float | None) -> Budget:
    """Return the budget of the promotion evaluations over all rounds, which ends with the run's, or with ``usd``."""
    budget, spent, done = run.tree.budget, run.tree.spend, promotion.tree.spend
    if usd is None and budget.usd is not None:
        usd = max(0.0, budget.usd - spent.usd)
    tokens = None if budget.tokens is None else max(0, budget.tokens - spent.tokens) + done.tokens
    return Budget(usd=None if usd is None else usd + done.usd, tokens=tokens)


def _charge(run: Run, promotion: Run, settings: Settings) -> None:
    """Count in the search's log what the promotion evaluations have spent since the last time."""
    spent, counted = promotion.tree.spend, run.tree.promotion_spend
    amounts = {each.name: getattr(spent, each.name) - getattr(counted, each.name) for each in fields(Usage)}
    usage = Usage(**{**amounts, "usd": round(amounts["usd"], 12)})
    if usage != Usage():
        run.append(PromotionSpent(names_by_role(settings)["solve"], usage))


def _write_certificates(run: Run) -> Path | None:
    """Write the certificates that are missing; return that of the last promotion, None without one."""
    file = None
    for number, agent in enumerate(run.tree.promotions.accepted, 1):
        if agent is not None:
            file = run.folder / CERTIFICATES / f"round-{number}-agent-{agent}.json"
            if not file.exists():
                write_durably(file, write_certificate(_build(run, number)))
    return file

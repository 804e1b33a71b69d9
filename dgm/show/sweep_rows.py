"""The state of a sweep, as lines for people and as a record for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.domain import Tally
from dgm.experiments.performing import Sweep
from dgm.experiments.run_state import OVER, RunStage, SweepRunState
from dgm.experiments.sweep_plan import PlannedRun
from dgm.show.safe import Side, fit, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BEST, count_text, tally_text, usd_text

_TONES = {
    RunStage.FINISHED: Tone.GOOD,
    RunStage.SPENT: Tone.WARN,
    RunStage.INTERRUPTED: Tone.WARN,
    RunStage.DAMAGED: Tone.BAD,
    RunStage.TO_COME: Tone.DIM,
}
_FAILED = "failed"
_STATE, _NUMBER, _BEST = 14, 11, 24


def sweep_lines(
    runs: Sequence[PlannedRun], standings: Mapping[str, SweepRunState], failures: Mapping[str, str]
) -> Iterator[Line]:
    """Yield a head, a line for each run, and one more for each failure."""
    width = max(len(run.name) for run in runs)
    head = (
        f"{'run':<{width}}  {'state':<{_STATE}}{'evaluations':>{_NUMBER}}{'agents':>8}  "
        f"{BEST + ' best agent':<{_BEST}}{'bound':>5}{'USD':>9}"
    )
    yield make_line(Span(head, Tone.KEY))
    for run in runs:
        yield run_line(run, standings[run.name], width, failed=run.name in failures)
    for name, why in failures.items():
        yield make_line(Span(f"{one_line(name, 100)} failed: {one_line(why, 400)}", Tone.BAD))


def run_line(run: PlannedRun, standing: SweepRunState, width: int, *, failed: bool) -> Line:
    """Return a run's name, state, counts, best agent with its lower bound, and spend."""
    state = _FAILED if failed else standing.stage.value
    tone = Tone.BAD if failed else _TONES.get(standing.stage, Tone.PLAIN)
    pieces = [Span(f"{run.name:<{width}}  "), Span(f"{state:<{_STATE}}", tone)]
    if facts := standing.facts:
        goal = facts["budget"]["evaluations"]
        graded = f"{facts['evaluations']['graded']}" + (f"/{goal}" if goal else "")
        best, bound = best_cells(facts)
        pieces.append(
            Span(
                f"{graded:>{_NUMBER}}{facts['agents']:>8}  {fit(best, _BEST)}{bound:>5}"
                f"{fit(spent_usd_text(facts), 9, Side.RIGHT)}"
            )
        )
    return make_line(*pieces)


def best_cells(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return ``7: 11/20 55%`` and ``0.30``, the agent's own lower bound; dashes if there is no verdict yet."""
    best = facts["best"]
    if not best:
        return "–", "–"
    own = Tally(best["own"]["resolved"], best["own"]["unresolved"])
    return f"{best['id']}: {tally_text(own)}", f"{best['lower_bound']:.2f}"


def spent_usd_text(facts: Mapping[str, Any]) -> str:
    """Return a run's spend in USD as text."""
    usd = facts["spend"]["usd"]
    return f"{usd:.4f}" if usd < 100 else f"{usd:.0f}"


def ended_text(run: PlannedRun, standing: SweepRunState, failure: str) -> str:
    """Return one line about a run whose process has ended."""
    facts = standing.facts
    how = f"failed ({one_line(failure, 300)})" if failure else one_line(standing.words, 200) or "not begun"
    if not facts:
        return f"{run.name}  {how}"
    best, bound = best_cells(facts)
    done = count_text(facts["evaluations"]["graded"], "evaluation")
    return f"{run.name}  {how}: {done}, best agent {best} (lower bound {bound}), {spent_usd_text(facts)} USD"


def outcome_text(made: Sweep) -> str:
    """Return the counts, ``4 runs done, 1 failed, 1 to come``, with the runs that exceed the sweep's money."""
    found: dict[str, int] = {}
    for run in made.runs:
        stage = made.standings[run.name].stage
        name = "done" if stage in OVER else stage.value
        name = _FAILED if run.name in made.failures else "running" if run.name in made.running else name
        found[name] = found.get(name, 0) + 1
    said = ", ".join(f"{count} {name}" for name, count in found.items())
    left = made.unaffordable
    if left and made.max_usd is not None and not made.stopping:
        said += f"; max_usd = {usd_text(made.max_usd)} of the sweep has no room for {count_text(len(left), 'more run')}"
    return f"of {count_text(len(made.runs), 'run')}: {said}"


def sweep_record(made: Sweep, name: str) -> dict[str, Any]:
    """Return the state of a sweep as a record for programs."""
    return {
        "sweep": name,
        "folder": str(made.folder.folder),
        "max_usd": made.max_usd,
        "usd": round(sum(standing.usd for standing in made.standings.values()), 6),
        "runs": [_run_record(run, made) for run in made.runs],
    }


def _run_record(run: PlannedRun, made: Sweep) -> dict[str, Any]:
    standing, failure = made.standings[run.name], made.failures.get(run.name)
    facts = standing.facts
    return {
        "run": run.name,
        "variant": run.variant,
        "seed": run.seed,
        "policy": run.settings.policy.name,
        "folder": str(made.folder.run(run.name)),
        "log": str(made.folder.log(run.name)),
        "stage": standing.stage.value,
        "state": standing.words,
        "failure": failure,
        "agents": facts["agents"] if facts else 0,
        "evaluations": facts["evaluations"]["graded"] if facts else 0,
        "best": facts["best"] if facts else None,
        "usd": facts["spend"]["usd"] if facts else 0.0,
        "tokens": facts["spend"]["tokens"] if facts else 0,
    }

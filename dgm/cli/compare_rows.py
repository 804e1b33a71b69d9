"""The output of ``dgm compare``: a table of the runs, their pairs, and notes on the comparison."""

from collections.abc import Iterator, Sequence

from dgm.comparison.grouping import Grouping
from dgm.comparison.pairs import FEW, SEARCH, SeedPairs, TaskPairs
from dgm.comparison.subjects import ComparedRun
from dgm.domain import Tally
from dgm.report.headline import difference_record
from dgm.show.safe import Side, cell_width, fit, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BEST, count_text, given_up_text, interval_text, mcnemar_text, tally_text

_WIDEST = 40
_SHOWN = 12
"""Maximum number of pairs whose values are printed."""
_KEPT = 160


def comparison_lines(
    subjects: Sequence[ComparedRun],
    grouping: Grouping | None,
    tasks: Sequence[TaskPairs],
    seeds: Sequence[SeedPairs],
    notes: Sequence[str],
) -> Iterator[Line]:
    """Yield the whole comparison for people."""
    suite = one_line(subjects[0].facts["benchmark"], 80)
    yield make_line(
        Span(f"{count_text(len(subjects), 'run')} on {suite}", Tone.STRONG),
        f"; {BEST} is the agent that a run's policy recommends, with its own lower bound",
    )
    yield from table_lines(_run_rows(subjects))
    if grouping and len(grouping.groups) > 1:
        yield from _seed_lines(grouping, seeds)
    elif tasks:
        yield from _task_lines(tasks)
    for note in notes:
        yield make_line(Span("note  ", Tone.KEY), one_line(note, 400))


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    """Yield rows with aligned columns; the first row is the head, and the first column is left-aligned."""
    widths = [min(_WIDEST, max(cell_width(row[column]) for row in rows)) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        pieces = [
            fit(cell, width, Side.LEFT if column in (0, 1) else Side.RIGHT)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield make_line(Span("  ".join(pieces), Tone.KEY if number == 0 else Tone.PLAIN))


def _run_rows(subjects: Sequence[ComparedRun]) -> Sequence[Sequence[str]]:
    rows = [
        ["run", "state", "policy", "seed", "evaluations", "agents", "USD", f"{BEST} best", "95 %", "bound"],
    ]
    examined = any(each.holdout_tally for each in subjects)
    for each in subjects:
        facts, best = each.facts, each.facts["best"]
        own = Tally(best["own"]["resolved"], best["own"]["unresolved"])
        given_up = given_up_text(best.get("given_up", 0))
        rows.append(
            [
                each.name,
                facts["state"],
                each.identity.policy,
                str(each.identity.seed),
                str(facts["evaluations"]["graded"]),
                str(facts["agents"]),
                f"{facts['spend']['usd']:.4f}",
                f"{best['id']}: {tally_text(own)}" + (f", {given_up}" if given_up else ""),
                interval_text(own) or "–",
                f"{best['lower_bound']:.2f}",
            ]
        )
    if examined:
        rows[0].append("holdout")
        for row, each in zip(rows[1:], subjects, strict=True):
            row.append(tally_text(each.holdout_tally or Tally()))
    return rows


def _seed_lines(grouping: Grouping, seeds: Sequence[SeedPairs]) -> Iterator[Line]:
    what = "the same seed" + "".join(f" and {key}" for key in grouping.paired_by[1:])
    yield make_line()
    yield make_line(
        Span(f"grouped by {grouping.by}", Tone.STRONG),
        f"; a pair is two runs of {what}, one of each group; intervals are 95 % (bootstrap over pairs)",
    )
    before: tuple[str, str] | None = None
    for found in seeds:
        if (found.first, found.second) != before:
            before = (found.first, found.second)
            first, second = one_line(found.first, _KEPT), one_line(found.second, _KEPT)
            yield make_line(Span(f"{second} minus {first}", Tone.STRONG))
        yield make_line(f"  {found.measure}: {_difference_text(found)}")
        if found.pairs:
            yield make_line(Span(f"    {_pairs_text(found)}", Tone.DIM))


def _difference_text(found: SeedPairs) -> str:
    if found.mean is None:
        return "no pair: no seed has a run with a verdict in both groups"
    said = f"{found.mean:+.3f} on average over {count_text(len(found.pairs), 'pair')}"
    if found.interval is None:
        return f"{said}; one pair says nothing of the spread"
    low, high = found.interval
    rough = "; so few pairs make a rough interval" if len(found.pairs) < FEW else ""
    return f"{said}, interval {low:+.3f} to {high:+.3f}{rough}"


def _pairs_text(found: SeedPairs) -> str:
    shown = list(found.pairs.items())[:_SHOWN]
    texts = [f"{'/'.join(key)}: {one:.2f} → {two:.2f}" for key, (one, two) in shown]
    more = [f"and {len(found.pairs) - _SHOWN} more"] if len(found.pairs) > _SHOWN else []
    return one_line("seed " + ", ".join([*texts, *more]), 600)


def _task_lines(tasks: Sequence[TaskPairs]) -> Iterator[Line]:
    yield make_line()
    yield make_line(
        Span(f"each run against {one_line(tasks[0].first.name, _KEPT)}", Tone.STRONG),
        "; a pair is one task that the best agents of both runs have a verdict on (first attempts)",
    )
    for each in tasks:
        found = each.found
        yield make_line(
            Span(f"{one_line(each.second.name, _KEPT)}", Tone.STRONG), f"  {_task_pairs_text(each)}"
        )
        if found.gained or found.lost:
            test = mcnemar_text(found.p, found.mid_p)
            yield make_line(f"    gained {len(found.gained)}, lost {len(found.lost)}; {test}")
    if any(each.tasks == SEARCH for each in tasks):
        yield make_line(
            "on search tasks both agents were chosen for their verdicts on these very tasks, which flatters; "
            "dgm report RUN --holdout examines each on tasks that it never saw"
        )


def _task_pairs_text(each: TaskPairs) -> str:
    found = each.found
    if not found.first.n:
        return f"{each.tasks}: no task that both have a verdict on"
    one, two = tally_text(found.first), tally_text(found.second)
    record = difference_record(found)
    said = f"{each.tasks}: {two} against {one}"
    if record and record["interval"]:
        low, high = record["interval"]
        said += f", difference {record['mean']:+.2f} (95 % {low:+.2f} to {high:+.2f}, bootstrap over tasks)"
    return said

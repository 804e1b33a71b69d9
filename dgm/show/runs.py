"""A list of runs: a row each, and below it the notices about single runs."""

from collections.abc import Iterator, Sequence

from dgm.analysis.budget_use import BudgetUse, nearest_limit
from dgm.analysis.run_list import RunRow
from dgm.archive.history import LIVING
from dgm.show.safe import Side, cell_width, fit, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.times import rough_duration_text
from dgm.show.words import clock_text, count_text, tally_text, usd_text

NAME_WIDTH = 40
STATE_WIDTH = 26
_HEADS = ("RUN", "STATE", "AGE", "LAST", "AGENTS", "BEST", "SPENT", "LEFT", "SIZE")
_FIRST_TO_GO = ("AGE", "AGENTS", "SPENT", "LAST", "BEST")
_LEFT_TO = ("RUN", "STATE", "BEST", "LEFT")
_KINDS = {"evaluation": "an evaluation", "simulation": "a simulated search", "replay": "a live replay"}
_PROBLEMS = ("not a run", "damaged", "unreadable")


def run_lines(
    rows: Sequence[RunRow], now: float, *, sizes: bool = False, width: int | None = None
) -> Iterator[Line]:
    """Yield the list for people.

    Args:
        rows: in their order.
        now: Unix time, for ages.
        sizes: whether there is a column of them.
        width: cells of a line; the least important columns go first where there is no room. None: no limit.
    """
    table = [[*_HEADS], *(_row_cells(row, now) for row in rows)]
    columns = [number for number, head in enumerate(_HEADS) if sizes or head != "SIZE"]
    if not any(row.seen for row in rows):
        columns = [number for number in columns if _HEADS[number] in ("RUN", "STATE", "SIZE")]
    widths = [max(cell_width(texts[number]) for texts in table) for number in range(len(_HEADS))]
    for head in _FIRST_TO_GO:
        if width is not None and sum(widths[number] + 2 for number in columns) - 2 > width:
            columns = [number for number in columns if _HEADS[number] != head]
    yield _row_line(table[0], columns, widths, Tone.DIM)
    for row, texts in zip(rows, table[1:], strict=True):
        yield _row_line(texts, columns, widths, Tone.PLAIN, _row_tone(row))
        for note in _note_spans(row):
            yield make_line("    ", note)


def size_text(size_bytes: int) -> str:
    """Return ``12 kB``, ``3.4 MB``, ``1.2 GB``."""
    for size, unit in ((1e9, "GB"), (1e6, "MB")):
        if size_bytes >= size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes / 1e3:.0f} kB"


def left_text(use: BudgetUse) -> str:
    """Return the rest of a limit: ``94 of 160 evaluations``, ``3.20 of 20.00 USD``."""
    match use.name:
        case "usd":
            return f"{use.left:.2f} of {usd_text(use.limit)} USD"
        case "seconds":
            return f"{clock_text(use.left)} of {clock_text(use.limit)}"
        case _:
            return f"{use.left:,.0f} of {use.limit:,.0f} {use.name}"


def _row_cells(row: RunRow, now: float) -> list[str]:
    seen, best = row.seen, row.best
    name, state = one_line(row.name, NAME_WIDTH), one_line(_state_text(row), STATE_WIDTH)
    size = "" if row.size_bytes is None else size_text(row.size_bytes)
    if seen is None:
        return [name, state, *[""] * 6, size]
    use = nearest_limit(row.budget)
    return [
        name,
        state,
        rough_duration_text(now - seen.created, 1) if seen.created else "–",
        rough_duration_text(now - seen.last_at, 1) if seen.last_at else "–",
        f"{seen.agents:,}",
        f"{best.agent}: {tally_text(best.own)}, ≥ {best.lower_bound:.2f}" if best and best.own.n else "–",
        f"{seen.usd:.2f} USD" if seen.usd else f"{seen.tokens:,} tokens",
        left_text(use) if use else "no limit",
        size,
    ]


def _state_text(row: RunRow) -> str:
    if row.pid is not None and row.state in LIVING:
        return f"{row.state} (pid {row.pid})"
    if row.elsewhere and row.state in LIVING:
        return f"{row.state} on {row.elsewhere}?"
    return row.state


def _row_tone(row: RunRow) -> Tone:
    if row.state in _PROBLEMS:
        return Tone.BAD
    if row.state in ("interrupted", "paused") or (row.elsewhere and row.state in LIVING):
        return Tone.WARN
    return Tone.GOOD if row.state == "running" else Tone.PLAIN


def _note_spans(row: RunRow) -> Iterator[Span]:
    if row.problem:
        yield Span(one_line(row.problem, 300), Tone.WARN)
    if row.kind in _KINDS:
        yield Span(_KINDS[row.kind], Tone.DIM)
    if row.elsewhere and row.state in LIVING:
        host = one_line(row.elsewhere, 60)
        yield Span(f"written on {host}: it runs there, or this is a copy from there", Tone.WARN)
    elif row.elsewhere:
        yield Span(f"written on {one_line(row.elsewhere, 60)}", Tone.DIM)
    elif row.never_written_here:
        yield Span("unpacked or copied, never written here", Tone.DIM)
    if row.seen and row.seen.waiting:
        who = count_text(row.seen.waiting, "child waits", "children wait")
        yield Span(f"{who} for you: dgm approve {one_line(row.name, 120)}", Tone.WARN)


def _row_line(
    texts: Sequence[str], columns: Sequence[int], widths: Sequence[int], tone: Tone, state: Tone | None = None
) -> Line:
    spans: list[Span | str] = []
    for number in columns:
        head, last = _HEADS[number], number == columns[-1]
        side = Side.LEFT if head in _LEFT_TO else Side.RIGHT
        shown = texts[number] if last and side is Side.LEFT else fit(texts[number], widths[number], side)
        own = state if head == "STATE" and state else Tone.STRONG if head == "RUN" and state else tone
        spans += [Span(shown, own), "" if last else "  "]
    return make_line(*spans)

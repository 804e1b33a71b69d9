"""Operators in a report: a line each for people, a document each for programs."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from dgm.analysis.operator_accounts import MeanGain, OperatorLine, StageTime
from dgm.analysis.summary import spend_record
from dgm.show.safe import Side, cell_width, fit, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.stats.better import JUDGED

HEADER = ("operator", "tried", "born", "judged", "better", "mean gain [95 %]")
NOTE = (
    "  gain: own rate minus the better parent's, in points, of children with at least",
    f"  {JUDGED} verdicts; parents are chosen for high rates, so gains are biased down, for",
    "  all operators alike",
)
WIDTH = 80
"""Columns of the table."""
NAME = 24
"""Maximum characters of an operator's name that are shown."""
_FIRM = "\N{NO-BREAK SPACE}"
SHOWN_S = 0.005
"""Smallest mean of a vetting stage in seconds that people are shown; programs get all stages."""


def operator_lines(lines: Sequence[OperatorLine]) -> Sequence[Line]:
    """Return the table for people, at most ``WIDTH`` wide; empty where there was no expansion."""
    if not lines:
        return []
    rows = [HEADER, *map(_table_row, lines)]
    widths = [max(cell_width(row[place]) for row in rows) for place in range(len(HEADER))]
    last = len(HEADER) - 1
    shown = [make_line(Span("operators:", Tone.STRONG))]
    for number, row in enumerate(rows):
        places = [
            fit(cell, width, Side.LEFT if place in (0, last) else Side.RIGHT)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        name, rest = places[0], "  ".join(places[1:]).rstrip()
        shown.append(make_line("  ", Span(name, Tone.KEY if number else Tone.DIM), f"  {rest}"))
        for text in _detail_texts(lines[number - 1]) if number else ():
            shown += [make_line(Span(each, Tone.DIM)) for each in _wrap_at_commas(text)]
    return [*shown, *(make_line(Span(each, Tone.DIM)) for each in NOTE)]


def _wrap_at_commas(text: str) -> list[str]:
    """Wrap the text behind commas only, so that a number keeps its unit."""
    whole = text.replace(" ", _FIRM).replace(f",{_FIRM}", ", ")
    lines = wrap(whole, WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)
    return [line.replace(_FIRM, " ") for line in lines]


def operator_records(lines: Sequence[OperatorLine]) -> list[dict[str, Any]]:
    """Return one JSON record for each operator, for programs."""
    return [_operator_record(line) for line in lines]


def vetting_text(stages: Mapping[str, StageTime]) -> str:
    """Return ``check 1.2 s, improve 0.8 s``, the means per run in the order of the stages; empty if all are short."""
    means = {name: took.seconds / took.runs for name, took in stages.items()}
    return ", ".join(f"{one_line(name, 40)} {mean:.2f} s" for name, mean in means.items() if mean >= SHOWN_S)


def _table_row(line: OperatorLine) -> tuple[str, ...]:
    counts = (line.tried, line.born, line.judged, line.better)
    return (one_line(line.operator, NAME), *map(str, counts), gain_text(line.gain))


def _detail_texts(line: OperatorLine) -> list[str]:
    found = [_spend_and_time_text(line)]
    open_yet = (("waiting for a person", line.waiting), ("unfinished", line.unfinished))
    if any(count for _, count in open_yet):
        found.append(", ".join(f"{what} {count}" for what, count in open_yet if count))
    if line.stillborn:
        dead = sorted(line.stillborn.items(), key=lambda item: (-item[1], item[0]))
        found.append("stillborn: " + ", ".join(f"{one_line(stage, 40)} {count}" for stage, count in dead))
    if line.aims:
        found.append("aims: " + ", ".join(f"{one_line(aim, 40)} {count}" for aim, count in line.aims.items()))
    if stages := vetting_text(line.vetting):
        found.append("vetting, mean: " + stages)
    return found


def _spend_and_time_text(line: OperatorLine) -> str:
    ended = line.tried - line.unfinished
    better = f" ({_spend_text(line, line.better)} a better child)" if line.better else ""
    return f"spend {_spend_text(line, 1)}{better}" + (f", {line.seconds / ended:.1f} s each" if ended else "")


def gain_text(gain: MeanGain | None) -> str:
    """Return ``+3.1 [-2.0, +8.2]``, in points; a dash without a gain."""
    if gain is None:
        return "–"
    interval = (
        f" [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
        if gain.low is not None and gain.high is not None
        else ""
    )
    return f"{100 * gain.mean:+.1f}{interval}"


def _spend_text(line: OperatorLine, share: int) -> str:
    """Return the spend per share in USD; in tokens where nothing cost any."""
    if line.spend.usd:
        return f"{line.spend.usd / share:.4f} USD"
    return f"{line.spend.tokens / share:,.0f} tokens"


def _operator_record(line: OperatorLine) -> dict[str, Any]:
    return {
        "operator": line.operator,
        "tried": line.tried,
        "born": line.born,
        "waiting": line.waiting,
        "unfinished": line.unfinished,
        "stillborn": dict(sorted(line.stillborn.items())),
        "aims": dict(sorted(line.aims.items())),
        "judged": line.judged,
        "better": line.better,
        "gain": _gain_record(line.gain),
        "spend": spend_record(line.spend),
        "usd_per_better": round(line.spend.usd / line.better, 6) if line.better else None,
        "tokens_per_better": round(line.spend.tokens / line.better) if line.better else None,
        "seconds": round(line.seconds, 3),
        "vetting": {
            stage: {"runs": took.runs, "seconds": round(took.seconds, 6)}
            for stage, took in line.vetting.items()
        },
    }


def _gain_record(gain: MeanGain | None) -> dict[str, Any] | None:
    if gain is None:
        return None
    ends = [round(end, 6) for end in (gain.low, gain.high) if end is not None]
    return {"mean": round(gain.mean, 6), "interval": ends or None}

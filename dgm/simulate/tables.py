"""Standings as tables of text: for a terminal, and for a document."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dgm.simulate.measures import MEAN, Difference, FamilyResult

HEADER = (
    "policy",
    "final",
    "difference [95 %]",
    "won",
    "area",
    "speed",
    "regret",
    "to oracle",
    "stuck",
    "agents",
    "ms",
)
LEGEND = (
    "final: true score at the end of the best agent, which is the recommended one; difference: to {reference}, paired, "
    "with the 95 % interval; won: paired trials with a higher final score, ties half; area: under the anytime curve; "
    "speed: how many times fewer evaluations this policy's mean curve needs to get to the end of {reference}'s (where "
    "it does not: to its own end; –: the searches began there); regret: against the highest true score in its own "
    "tree; to oracle: against the oracle of clade metaproductivity; stuck: trials that ended at the root although the "
    "tree held agents with a higher true score; ms: processor time per decision."
)

FEW = 10
"""Below so many seeds a bootstrap's interval is clearly too narrow."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a header and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(standings: Sequence[FamilyResult]) -> list[Table]:
    """Return a table for the mean of families (or the only family), and one of all families' final scores."""
    families = list(dict.fromkeys(standing.family for standing in standings))
    if not families:
        return []
    overall = families[-1]
    found = [family_table(standings, overall)]
    if len(families) > 1:
        found.append(_finals(standings, families))
    return found


def family_tables(standings: Sequence[FamilyResult]) -> list[Table]:
    """Return one table of all measures for each family."""
    families = dict.fromkeys(standing.family for standing in standings if standing.family != MEAN)
    return [family_table(standings, family) for family in families]


def family_table(standings: Iterable[FamilyResult], family: str) -> Table:
    """Return all measures of one family, the highest final score first."""
    rows = sorted((s for s in standings if s.family == family), key=lambda s: (-s.final, s.policy))
    seeds = sorted({standing.seeds for standing in rows})
    count = _seeds(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {_seeds(seeds[-1])}"
    return Table(f"{family} ({count})", HEADER, tuple(map(_row, rows)))


def warning(standings: Sequence[FamilyResult]) -> str:
    """Return one line with each policy's share of trials that were cut short; empty where none was."""
    families = list(dict.fromkeys(standing.family for standing in standings))
    cut = {s.policy: s.cut_short for s in standings if s.family == families[-1] and s.cut_short}
    if not cut:
        return ""
    shares = ", ".join(f"{policy} {share:.1%}" for policy, share in cut.items())
    return f"Warning: trials that infrastructure failures cut short count like full ones, of {shares}."


def caution(standings: Iterable[FamilyResult]) -> str:
    """Return one line of warning where differences rest on fewer than ``FEW`` seeds; empty elsewhere."""
    compared = list(standings)
    fewest = min((standing.seeds for standing in compared), default=FEW)
    if fewest >= FEW or len({standing.policy for standing in compared}) < 2:
        return ""
    if fewest == 1:
        return "Warning: differences rest on 1 seed, which gives no interval."
    return f"Warning: differences rest on {fewest} seeds; intervals from fewer than {FEW} are too narrow to rely on."


def difference_text(difference: Difference) -> str:
    """Return the difference as text, for example ``+0.120 [+0.101, +0.139]``."""
    if difference.low is None or difference.high is None:
        return f"{difference.mean:+.3f}"
    return f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def markdown(table: Table) -> str:
    """Return the table in Markdown, its title in bold above it."""
    lines = [
        f"**{table.title}**",
        "",
        _line(table.header),
        _line(["---", *["---:"] * (len(table.header) - 1)]),
        *map(_line, table.rows),
    ]
    return "\n".join(lines)


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _row(s: FamilyResult) -> tuple[str, ...]:
    return (
        s.policy,
        f"{s.final:.3f}",
        difference_text(s.difference),
        f"{s.won:.0%}",
        f"{s.area:.3f}",
        "–" if s.speed is None else f"{s.speed:.2f}×",
        f"{s.regret:.3f}",
        "–" if s.oracle_regret is None else f"{s.oracle_regret:.3f}",
        f"{s.stuck:.1%}",
        f"{s.agents:.0f}",
        f"{s.decision_ms:.2f}",
    )


def _finals(standings: Sequence[FamilyResult], families: Sequence[str]) -> Table:
    final = {(s.policy, s.family): s.final for s in standings}
    policies = sorted(
        dict.fromkeys(s.policy for s in standings), key=lambda policy: -final.get((policy, families[-1]), 0.0)
    )
    rows = tuple(
        (policy, *(f"{final[policy, f]:.3f}" if (policy, f) in final else "–" for f in families))
        for policy in policies
    )
    header = ("policy", *("mean" if family == MEAN else family for family in families))
    return Table("final score in each family", header, rows)

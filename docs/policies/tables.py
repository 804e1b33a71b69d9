"""Makes the simulated tables of ``docs/policies.md``, those of ``docs/policy-tables.md``, and the picture of curves.

The results of all simulated searches are kept beside this file (``simulated.jsonl.xz``, one line a search, as
``dgm simulate --results`` writes them), so that only what the code of now has no result for is performed: with nothing
changed that takes three minutes, from nothing two hours on two cores. It can be stopped, and goes on
where it was.
"""

import argparse
import json
import lzma
import shlex
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blocks import check, fill_in, whole_lines
from commands import exit_code, finish

from dgm.archive.durable import write_durably
from dgm.errors import UserError
from dgm.simulation.fingerprint import fingerprint
from dgm.simulation.results import Results

HERE = Path(__file__).parent
DOCS = HERE.parent
KEPT = HERE / "simulated.jsonl.xz"
WORK = DOCS.parent / "dist" / "simulated"
RESULTS = WORK / "results.jsonl"
BLOCKS = ("reported", "finals", "pair", "fresh", "reserved", "cells")
MEAN, FINALS = "mean of families", "final score in each family"
PAIR = "--policy lineage --policy hgm"
FOUR = "--policy lineage --policy hgm --policy dgm --policy best-of-n --family reported --seeds 2000:2030"


@dataclass(frozen=True, slots=True)
class Part:
    """One study."""

    name: str
    title: str
    arguments: str
    """Of ``dgm simulate``."""
    cell: bool = True
    """Whether it is a row of the table of cells; if so, the tables of single families are left out."""


PARTS = (
    Part("reported", "All policies, all reported families", "--family reported --seeds 2000:2100", False),
    Part("reserved", "Reserved families", f"{PAIR} --family reserved --seeds 6000:6100", False),
    Part("met", "Seeds that two versions had met", f"{PAIR} --family reported --seeds 9300:9400", False),
    Part("fresh", "Seeds that no version had met", f"{PAIR} --family reported --seeds 9400:9500", False),
    Part("budget 200", "A quarter of the budget", f"{FOUR} --budget 200"),
    Part("budget 800", "The same seeds at the budget of the tables above", FOUR),
    Part("budget 3000", "Nearly four times the budget", f"{FOUR} --budget 3000"),
    Part("cost 0", "Expansions that cost nothing", f"{FOUR} --expansion-cost 0"),
    Part("cost 5", "Expansions that cost five evaluations", f"{FOUR} --expansion-cost 5"),
    Part("cost 10", "Expansions that cost ten evaluations", f"{FOUR} --expansion-cost 10"),
    Part("20 workers", "Twenty workers", f"{FOUR} --workers 20"),
    Part("64 workers", "Sixty-four workers", f"{FOUR} --workers 64"),
)


def main() -> int:
    """Performs what is missing, then writes all files anew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only",
        action="append",
        choices=[part.name for part in PARTS],
        help="keep the results of this study, and write no table",
    )
    only = parser.parse_args().only
    check(DOCS / "policies.md", BLOCKS)
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        unpack()
    except UserError as error:
        sys.exit(str(error))
    for part in PARTS:
        if part.name in (only or [part.name]):
            perform(part)
            pack()
    if not only:
        write_durably(DOCS / "policy-tables.md", whole_tables().encode())
        write_durably(DOCS / "pictures" / "policies.svg", (WORK / "curves.svg").read_bytes())
        fill_in(DOCS / "policies.md", short_tables())
    return 0


def unpack() -> None:
    """Adds what is kept to the results at hand, while no study writes them.

    Raises:
        UserError: a study does, or the file holds something else.
    """
    kept = lzma.decompress(KEPT.read_bytes()).decode().splitlines() if KEPT.exists() else []
    with Results(RESULTS):
        here = set(whole_lines(RESULTS))
        with RESULTS.open("a") as file:
            file.writelines(f"{line}\n" for line in kept if line not in here)


def pack() -> None:
    """Keeps the results that the code of now would have again, in the order of their trials."""
    lines = sorted(filter(_is_current, whole_lines(RESULTS)))
    write_durably(KEPT, lzma.compress("".join(f"{line}\n" for line in lines).encode()))


def _is_current(line: str) -> bool:
    result = json.loads(line)
    trial = result["trial"]
    try:
        return bool(result["version"] == fingerprint(trial["policy"], trial["family"], trial["budget"]))
    except UserError:
        return False


def perform(part: Part) -> None:
    """Has a study carried out as far as it is not known yet.

    Raises:
        subprocess.CalledProcessError: it went wrong.
        KeyboardInterrupt: it was interrupted.
    """
    command = [sys.executable, "-m", "dgm", "simulate", *shlex.split(part.arguments)]
    command += ["--results", str(RESULTS), "--markdown", str(WORK / f"{part.name}.md")]
    if part.name == "reported":
        command += ["--svg", str(WORK / "curves.svg")]
    finish(command)


def whole_tables() -> str:
    """All tables of all studies."""
    pages = ["# Policies compared: the whole tables\n\nWhat they mean is in `docs/policies.md`.\n"]
    legend = ""
    for part in PARTS:
        made, said, *rest = (WORK / f"{part.name}.md").read_text().split("\n\n")
        legend, said = said, said if said != legend else ""
        if part.cell:
            families = [at for at, text in enumerate(rest) if text.startswith("**")][2:]
            rest = rest[: families[0]] if families else rest
        pages.append("\n\n".join(filter(None, [f"## {part.title}", made, said, *rest])).rstrip() + "\n")
    return "\n".join(pages)


def short_tables() -> dict[str, str]:
    """For ``docs/policies.md``."""
    reported = tables_of("reported")
    return {
        "reported": "\n".join(reported[MEAN]),
        "finals": "\n".join(reported[FINALS]),
        "pair": pair_table("reported", "times fewer evaluations to `hgm`'s end", "speed"),
        "fresh": pair_table("fresh", "stuck at the seed (`hgm`)", "stuck"),
        "reserved": pair_table("reserved", "stuck at the seed (`hgm`)", "stuck"),
        "cells": cells_table(),
    }


def tables_of(part: str) -> dict[str, list[str]]:
    """The lines of a study's tables by what they are of."""
    pieces = (WORK / f"{part}.md").read_text().split("\n\n")
    titled = ((title.strip("*").partition(" (")[0], table) for title, table in pairwise(pieces))
    return {title: table.splitlines() for title, table in titled if table.startswith("| ")}


def rows_of(table: list[str]) -> dict[str, dict[str, str]]:
    """The values of a table by policy and column."""
    header, _, *rows = ([value.strip() for value in line.strip("|").split("|")] for line in table)
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def pair_table(part: str, title: str, column: str) -> str:
    """A row for each family: final scores of both policies, what lies between them, and one column more."""
    lines = [
        f"| family | `hgm` | `lineage` | difference [95 %] | won | {title} |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    tables = tables_of(part)
    for family in [*(name for name in tables if name not in (MEAN, FINALS)), MEAN]:
        rows = rows_of(tables[family])
        hgm, lineage = rows["hgm"], rows["lineage"]
        last = f"{lineage[column]} ({hgm[column]})" if column == "stuck" else lineage[column]
        name = "**mean**" if family == MEAN else f"`{family}`"
        values = (hgm["final"], lineage["final"], lineage["difference [95 %]"], lineage["won"], last)
        lines.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join(lines)


def cells_table() -> str:
    """A row for each policy in each cell."""
    columns = ("policy", "final", "difference [95 %]", "won", "area", "speed", "stuck", "agents")
    lines = [f"| cell | {' | '.join(columns)} |", "|---|---|" + "---:|" * (len(columns) - 1)]
    for part in PARTS:
        if part.cell:
            rows = rows_of(tables_of(part.name)[MEAN]).values()
            for cell, row in zip([part.name, *[""] * len(rows)], rows, strict=False):
                lines.append(f"| {cell} | {' | '.join(row[column] for column in columns)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(exit_code(main))

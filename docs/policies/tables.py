"""Makes the tables of ``docs/policies.md`` and ``docs/policy-tables.md``.

The results of all simulated searches are kept beside this file (``simulated.jsonl.xz``, one line a search, as
``dgm simulate --results`` writes them), so that only what the code of now has no result for is performed: with nothing
changed that takes seconds, from nothing hours. It can be stopped, and goes on where it was.
"""

import argparse
import json
import lzma
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blocks import fill_in

from dgm.errors import UserError
from dgm.simulate.fingerprint import fingerprint

HERE = Path(__file__).parent
DOCS = HERE.parent
KEPT = HERE / "simulated.jsonl.xz"
WORK = DOCS.parent / "dist" / "simulated"
RESULTS = WORK / "results.jsonl"
FOUR = "--policy lineage --policy hgm --policy dgm --policy best-of-n --family reported --seeds 2000:2030"
FIRST, FINAL, DIFFERENCE, WON, AREA, SPEED, STUCK, AGENTS = 0, 1, 2, 3, 4, 5, 8, 9
"""Columns of a table of all measures."""
PAIR = "--policy lineage --policy hgm"


@dataclass(frozen=True, slots=True)
class Part:
    """One study."""

    name: str
    title: str
    arguments: str
    """Of ``dgm simulate``."""
    brief: bool = True
    """Whether the tables of single families are left out of ``docs/policy-tables.md``."""


PARTS = (
    Part("reported", "All policies, all reported families", "--family reported --seeds 2000:2100", False),
    Part("pair", "lineage against hgm", f"{PAIR} --family reported --seeds 2000:2100"),
    Part("reserved", "Reserved families", f"{PAIR} --family reserved --seeds 6000:6100", False),
    Part("budget-200", "A quarter of the budget", f"{FOUR} --budget 200"),
    Part("budget-800", "The same seeds at the budget of the tables above", FOUR),
    Part("cost-0", "Expansions that cost nothing", f"{FOUR} --expansion-cost 0"),
    Part("cost-5", "Expansions that cost five evaluations", f"{FOUR} --expansion-cost 5"),
    Part("cost-10", "Expansions that cost ten evaluations", f"{FOUR} --expansion-cost 10"),
    Part("workers-20", "Twenty workers", f"{FOUR} --workers 20"),
    Part("workers-64", "Sixty-four workers", f"{FOUR} --workers 64"),
    Part("budget-3000", "Nearly four times the budget", f"{FOUR} --budget 3000"),
)


def main() -> int:
    """Performs what is missing, then writes all files anew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", action="append", choices=[part.name for part in PARTS], help="perform, write nothing"
    )
    parser.add_argument(
        "--pack", action="store_true", help="keep the results that there are, perform nothing"
    )
    chosen = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if KEPT.exists() and not RESULTS.exists():
        RESULTS.write_bytes(lzma.decompress(KEPT.read_bytes()))
    if not chosen.pack:
        for part in PARTS:
            if part.name in (chosen.only or [part.name]):
                perform(part)
    if not chosen.only:
        KEPT.write_bytes(lzma.compress(current(RESULTS.read_text()).encode(), preset=9))
    if not (chosen.only or chosen.pack):
        write_tables()
        fill_in(DOCS / "policies.md", short_tables())
    return 0


def perform(part: Part) -> None:
    """Has a study carried out as far as it is not known yet.

    Raises:
        subprocess.CalledProcessError: it was interrupted, or went wrong.
    """
    command = [sys.executable, "-m", "dgm", "simulate", *shlex.split(part.arguments)]
    command += ["--results", str(RESULTS), "--markdown", str(WORK / f"{part.name}.md")]
    if part.name == "reported":
        command += ["--svg", str(DOCS / "pictures" / "policies.svg")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def current(results: str) -> str:
    """The results that the code of now would have again, in the order of their trials."""
    return "".join(line + "\n" for line in sorted(filter(_is_current, results.splitlines())))


def _is_current(line: str) -> bool:
    result = json.loads(line)
    try:
        return bool(result["version"] == fingerprint(result["trial"]["policy"], result["trial"]["family"]))
    except UserError:
        return False


def write_tables() -> None:
    """All tables of all studies."""
    pages = [
        "# Policies compared: the whole tables\n\nWhat they mean and what follows from them is in `docs/policies.md`.\n"
    ]
    legend = ""
    for part in PARTS:
        if part.name == "pair":
            continue
        made, said, *rest = (WORK / f"{part.name}.md").read_text().split("\n\n")
        legend, said = said, said if said != legend else ""
        tables = rest[: 5 if part.brief else None]
        pages.append("\n\n".join(filter(None, [f"## {part.title}", made, said, *tables])).rstrip() + "\n")
    (DOCS / "policy-tables.md").write_text("\n".join(pages))


def short_tables() -> dict[str, str]:
    """For ``docs/policies.md``."""
    return {
        "reported": "\n".join(tables_of("reported")["mean of families"]),
        "finals": "\n".join(tables_of("reported")["final score in each family"]),
        "pair": pair_table("pair", "times fewer evaluations to `hgm`'s end", SPEED),
        "reserved": pair_table("reserved", "stuck at the seed (`hgm`)", STUCK),
        "cells": cells_table(),
    }


def tables_of(part: str) -> dict[str, list[str]]:
    """The lines of a study's tables by what they are of."""
    pieces = (WORK / f"{part}.md").read_text().split("\n\n")
    titled = ((title.strip("*").partition(" (")[0], table) for title, table in pairwise(pieces))
    return {title: table.splitlines() for title, table in titled if table.startswith("| ")}


def rows_of(table: list[str]) -> dict[str, list[str]]:
    """The values of a table of all measures, by policy."""
    values = [[value.strip() for value in line.strip("|").split("|")] for line in table[2:]]
    return {row[FIRST]: row for row in values}


def pair_table(part: str, title: str, column: int) -> str:
    """A row for each family: final scores of both policies, what lies between them, and one column more."""
    lines = [
        f"| family | `hgm` | `lineage` | difference [95 %] | won | {title} |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    tables = tables_of(part)
    for family in [
        name for name in tables if name not in ("mean of families", "final score in each family")
    ] + ["mean of families"]:
        rows = rows_of(tables[family])
        hgm, lineage = rows["hgm"], rows["lineage"]
        last = lineage[column] if column == SPEED else f"{lineage[column]} ({hgm[column]})"
        name = "**mean**" if family == "mean of families" else f"`{family}`"
        lines.append(
            f"| {name} | {hgm[FINAL]} | {lineage[FINAL]} | {lineage[DIFFERENCE]} | {lineage[WON]} | {last} |"
        )
    return "\n".join(lines)


def cells_table() -> str:
    """A row for each policy in each cell."""
    rows = ["| cell | policy | final | difference [95 %] | won | area | speed | stuck | agents |"]
    rows += ["|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for part in PARTS:
        if FOUR in part.arguments:
            cell = part.name.replace("-", " ")
            for row in rows_of(tables_of(part.name)["mean of families"]).values():
                shown = (row[at] for at in (FIRST, FINAL, DIFFERENCE, WON, AREA, SPEED, STUCK, AGENTS))
                rows.append(f"| {cell} | {' | '.join(shown)} |")
                cell = ""
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())

"""Compare four policies in real searches with the offline model, and print the tables of docs/evidence/policies.md.

Each search has the starter suite's search tasks and 120 evaluations; its best agent and the seed agent then try the
holdout tasks. Results are kept beside this file (``searches.jsonl``), one line a search; ``--time 9`` performs all
searches once more under another number. Two workers never finish in the same order, so equal searches differ.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import dgm
from dgm.stats import paired_bootstrap

FILE = Path(__file__).with_name("searches.jsonl")
ARCHIVE = Path(__file__).parents[2] / "dist" / "searches"
POLICIES = ("lineage", "hgm", "dgm", "best-of-n")
EVALUATIONS, WORKERS = 120, 2
Row = dict[str, Any]


def main() -> None:
    """Perform what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", type=int, default=0, help="of each policy; 0 prints the table only")
    parser.add_argument("--time", type=int, default=1, help="number of the repetition")
    arguments = parser.parse_args()
    rows: list[Row] = [json.loads(line) for line in FILE.read_text().splitlines()]
    known = {(row["time"], row["policy"], row["seed"]) for row in rows}
    for seed in range(1, arguments.searches + 1):
        for policy in POLICIES:
            if (arguments.time, policy, seed) not in known:
                rows.append(search(policy, seed, arguments.time))
                with FILE.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print("\n".join(table(rows)))


def search(policy: str, seed: int, time: int) -> Row:
    """Perform one search and its report, or continue it where it was stopped."""
    folder = ARCHIVE / f"{policy}-{seed}-{time}"
    if folder.exists():
        run = dgm.open(folder).resume()
    else:
        run = dgm.evolve(
            "starter",
            model="offline",
            folder=folder,
            policy=policy,
            seed=seed,
            workers=WORKERS,
            max_evaluations=EVALUATIONS,
        )
    with run:
        holdout = json.loads(run.report(holdout=True).model_dump_json())["holdout"]
        return {
            "time": time,
            "policy": policy,
            "seed": seed,
            "evaluations": EVALUATIONS,
            "agents": len(run.agents),
            "tasks": holdout["tasks"],
            "seed_resolved": holdout["seed"]["resolved"],
            "best_resolved": holdout["best"]["resolved"],
        }


def table(rows: list[Row]) -> list[str]:
    """Return a row for each policy: what its best agents solved, against the seed agent and against ``hgm``."""
    rivals = {(row["time"], row["seed"]): row["best_resolved"] for row in rows if row["policy"] == "hgm"}
    lines = [
        "| policy | searches | solved of 20 | mean [95 %] | to the seed agent [95 %] | to `hgm` [95 %] |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for policy in POLICIES:
        mine = [row for row in rows if row["policy"] == policy]
        solved = [row["best_resolved"] for row in mine]
        cells = (
            policy,
            str(len(mine)),
            f"{min(solved)} to {max(solved)}",
            interval([(row["seed"], row["best_resolved"]) for row in mine], ".1f"),
            interval([(row["seed"], row["best_resolved"] - row["seed_resolved"]) for row in mine], "+.1f"),
            "–"
            if policy == "hgm"
            else interval(
                [(row["seed"], row["best_resolved"] - rivals[row["time"], row["seed"]]) for row in mine],
                "+.1f",
            ),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def interval(values: list[tuple[int, float]], form: str) -> str:
    """Return the mean with its 95 % interval; repetitions of a seed count once, with their mean."""
    by_seed: defaultdict[int, list[float]] = defaultdict(list)
    for seed, value in values:
        by_seed[seed].append(value)
    means = [fmean(several) for several in by_seed.values()]
    low, high = paired_bootstrap(means)
    return f"{fmean(means):{form}} [{low:{form}}, {high:{form}}]"


if __name__ == "__main__":
    main()

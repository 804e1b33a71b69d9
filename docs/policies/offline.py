"""Compares four policies in real searches with the offline model, and puts the table into ``docs/policies.md``.

Each search has the starter suite's search tasks and equal evaluations; its best agent and the seed then try the holdout
tasks. What a search came to is kept beside this file (``offline.jsonl``), so that only what is missing is performed.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from blocks import fill_in

from dgm.simulate.fingerprint import fingerprint
from dgm.stats import paired_bootstrap

HERE = Path(__file__).parent
KEPT = HERE / "offline.jsonl"
PAGE = HERE.parent / "policies.md"
ARCHIVE = HERE.parents[1] / "dist" / "offline"
POLICIES = ("lineage", "hgm", "dgm", "best-of-n")
SEEDS = range(1, 11)
EVALUATIONS = 120
WORKERS = 2


def main() -> int:
    """Seeds in the outermost turn, so that what is there early is already paired."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="perform nothing")
    kept = {(line["policy"], line["seed"], line["version"]): line for line in _kept()}
    if not parser.parse_args().table:
        for seed in SEEDS:
            for policy in POLICIES:
                if (policy, seed, version(policy)) not in kept:
                    found = search(policy, seed)
                    kept[policy, seed, version(policy)] = found
                    with KEPT.open("a") as file:
                        file.write(json.dumps(found) + "\n")
    of_now = [line for (policy, _, code), line in kept.items() if code == version(policy)]
    fill_in(PAGE, {"offline": table(of_now)})
    return 0


def _kept() -> list[dict[str, Any]]:
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def version(policy: str) -> str:
    """Of the policy's code."""
    return fingerprint(policy, "drift")


def search(policy: str, seed: int) -> dict[str, Any]:
    """One search, gone on with where it was stopped, and its examination.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    name = f"{policy}-{seed}-{version(policy)}"
    arguments = ["resume", name]
    if not (ARCHIVE / name).exists():
        arguments = ["run", "--name", name, "--model", "offline", "--policy", policy, "--seed", str(seed)]
        arguments += ["--workers", str(WORKERS), "--max-evaluations", str(EVALUATIONS)]
    _dgm(*arguments)
    said = json.loads(_dgm("report", name, "--holdout", "--no-control", "--json"))
    return {
        "policy": policy,
        "seed": seed,
        "version": version(policy),
        "evaluations": EVALUATIONS,
        "agents": said["chosen"]["evaluated"],
        "depth": said["best"]["depth"],
        "tasks": said["holdout"]["tasks"],
        "seed_resolved": said["holdout"]["seed"]["resolved"],
        "best_resolved": said["holdout"]["best"]["resolved"],
    }


def _dgm(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "dgm", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DGM_ARCHIVE": str(ARCHIVE)},
    )
    return done.stdout


def table(found: list[dict[str, Any]]) -> str:
    """A row for each policy: what its searches' best agents solve of the holdout tasks, and the pairs with ``hgm``."""
    best = {(line["policy"], line["seed"]): line["best_resolved"] for line in found}
    tasks = max((line["tasks"] for line in found), default=0)
    rows = [
        f"| policy | agents | depth | resolved of {tasks}, each | mean [95 %] | to `hgm` [95 %] | won, tied, lost |",
        "|---|---:|---:|---|---:|---:|---:|",
    ]
    for policy in POLICIES:
        own = sorted((line for line in found if line["policy"] == policy), key=lambda line: int(line["seed"]))
        pairs = [
            best[policy, line["seed"]] - best["hgm", line["seed"]]
            for line in own
            if ("hgm", line["seed"]) in best
        ]
        if len(pairs) < 2:
            continue
        counts = [line["best_resolved"] for line in own]
        won, tied = sum(pair > 0 for pair in pairs), sum(pair == 0 for pair in pairs)
        apart = "–" if policy == "hgm" else _with_interval(pairs, "+.1f")
        score = "–" if policy == "hgm" else f"{won}, {tied}, {len(pairs) - won - tied}"
        agents, depth = (fmean(line[key] for line in own) for key in ("agents", "depth"))
        rows.append(
            f"| {policy} | {agents:.0f} | {depth:.1f} | {', '.join(map(str, counts))} "
            f"| {_with_interval(counts, '.1f')} | {apart} | {score} |"
        )
    return "\n".join(rows)


def _with_interval(values: list[int], form: str) -> str:
    low, high = paired_bootstrap(values)
    return f"{fmean(values):{form}} [{low:{form}}, {high:{form}}]"


if __name__ == "__main__":
    sys.exit(main())

"""Compares four policies in real searches with the offline model, and puts the table into ``docs/policies.md``.

Each search has the starter suite's search tasks and equal evaluations; its best agent and the seed then try the holdout
tasks. What a search came to is kept beside this file (``offline.jsonl``), so that only what is missing is performed.
A changed policy or number is noticed; when the offline model, the seed agent or the suite has, remove it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from blocks import check, fill_in, whole_lines

from dgm.archive.durable import write_durably
from dgm.simulate.fingerprint import fingerprint
from dgm.stats import paired_bootstrap

HERE = Path(__file__).parent
KEPT = HERE / "offline.jsonl"
PAGE = HERE.parent / "policies.md"
ARCHIVE = HERE.parents[1] / "dist" / "offline"
POLICIES = ("lineage", "hgm", "dgm", "best-of-n")
EVALUATIONS = 120
WORKERS = 2


def main() -> int:
    """Seeds in the outermost turn, so that what is there early is already paired."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", type=int, default=10, help="of each policy (default 10)")
    seeds = range(1, parser.parse_args().searches + 1)
    check(PAGE, ["offline"])
    kept = {_key(found): found for found in map(json.loads, whole_lines(KEPT))}
    wanted = [what(policy, seed) for seed in seeds for policy in POLICIES]
    for one in wanted:
        if _key(one) not in kept:
            kept[_key(one)] = one | search(one)
            write_durably(KEPT, "".join(json.dumps(found) + "\n" for found in kept.values()).encode())
    fill_in(PAGE, {"offline": table([kept[_key(one)] for one in wanted])})
    return 0


def what(policy: str, seed: int) -> dict[str, Any]:
    """All that says which search it is."""
    code = fingerprint(policy, "drift")
    return {"policy": policy, "seed": seed, "version": code, "evaluations": EVALUATIONS, "workers": WORKERS}


def _key(found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found[name] for name in ("policy", "seed", "version", "evaluations", "workers"))


def search(one: dict[str, Any]) -> dict[str, Any]:
    """One search, gone on with where it was stopped, and its examination.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    name = "-".join(map(str, _key(one)))
    arguments = ["resume", name]
    if not (ARCHIVE / name).exists():
        arguments = ["run", "--name", name, "--model", "offline", "--policy", one["policy"]]
        arguments += ["--seed", str(one["seed"]), "--workers", str(WORKERS)]
        arguments += ["--max-evaluations", str(EVALUATIONS)]
    _dgm(*arguments)
    status = json.loads(_dgm("status", name, "--json"))
    said = json.loads(_dgm("report", name, "--holdout", "--no-control", "--json"))
    return {
        "agents": status["agents"],
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

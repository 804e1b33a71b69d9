"""Perform the first command that ``dgm --help`` proposes over twenty seeds, and fill the table in ``docs/policies.md``.

Each search is started as a new user would start it, but for its name, its seed, the offline model and bubblewrap. What
it came to is kept beside this file (``first_command.jsonl``), one line a search, so that only what is missing is
performed. ``--at-once`` searches run side by side. Remove a line to perform its search again.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from blocks import check, fill_in, whole_lines
from commands import exit_code

from dgm.archive.durable import write_durably
from dgm.cli.commands import FIRST

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = HERE / "first_command.jsonl"
PAGE = HERE.parent / "policies.md"
ARCHIVE = ROOT / "dist" / "first-command"
PROGRAM = (sys.executable, "-m", "dgm")
SEEDS = range(20)
BLOCK = "first-command"
Found = dict[str, Any]
"""What one search came to: a line of ``first_command.jsonl``."""


def main() -> int:
    """Perform what is missing, then write the table anew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--at-once", type=int, default=1, help="searches side by side (default 1)")
    at_once = parser.parse_args().at_once
    check(PAGE, [BLOCK])
    kept = {found["seed"]: found for found in map(json.loads, whole_lines(KEPT)) if found["command"] == FIRST}
    missing = [seed for seed in SEEDS if seed not in kept]
    with ThreadPoolExecutor(at_once) as pool:
        for found in pool.map(search, missing):
            kept[found["seed"]] = found
            lines = [json.dumps(kept[seed]) + "\n" for seed in sorted(kept)]
            write_durably(KEPT, "".join(lines).encode())
            sys.stderr.write(f"{row(found)}\n")
    fill_in(PAGE, {BLOCK: table([kept[seed] for seed in sorted(kept)])})
    return 0


def search(seed: int) -> Found:
    """Perform one search, or go on with it where it was stopped, and return what it came to.

    Raises:
        subprocess.CalledProcessError: the search failed.
    """
    name = f"first-{seed}"
    words = [
        *FIRST.split()[1:],
        "--name",
        name,
        "--seed",
        str(seed),
        "--model",
        "offline",
        "--sandbox",
        "bubblewrap",
    ]
    if (ARCHIVE / name).exists():
        words = ["resume", name]
    said = json.loads(_output([*PROGRAM, *words, "--json"]))
    first = json.loads(_output([*PROGRAM, "show", name, "0", "--json"]))["own"]
    return {
        "command": FIRST,
        "seed": seed,
        "evaluations": said["evaluations"]["graded"],
        "agents": said["agents"],
        "minutes": round(said["seconds"] / 60, 1),
        "best": said["best"]["id"],
        "depth": said["best"]["depth"],
        "best_own": [said["best"]["own"]["resolved"], said["best"]["own"]["n"]],
        "seed_own": [first["resolved"], first["n"]],
    }


def _output(command: Sequence[str]) -> str:
    # Not ``commands.finish``, which only the main thread can call. Ctrl-C reaches the search by itself.
    env = {**os.environ, "DGM_ARCHIVE": str(ARCHIVE)}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout


def row(one: Found) -> str:
    """Return the line of the table for one search."""
    best = f"agent {one['best']}, generation {one['depth']}" if one["best"] else "the seed agent"
    own, first = ("{} of {}".format(*one[key]) for key in ("best_own", "seed_own"))
    values = (one["seed"], one["evaluations"], one["agents"], best, own, first, one["minutes"])
    return f"| {' | '.join(map(str, values))} |"


def table(found: Sequence[Found]) -> str:
    """Return a row for each search, and how many handed out another agent than the seed."""
    rows = ["| seed | evaluations | agents | best | its own verdicts | the seed agent's | minutes |"]
    rows.append("|---:|---:|---:|---|---:|---:|---:|")
    rows += map(row, found)
    others = sum(one["best"] != 0 for one in found)
    return "\n".join([*rows, "", f"**{others} of {len(found)}** hand out an agent that is not the seed."])


if __name__ == "__main__":
    sys.exit(exit_code(main))

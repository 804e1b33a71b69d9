"""Compares four policies in real searches with the offline model, and puts the table into ``docs/policies.md``.

Each search has the starter suite's search tasks and equal evaluations; its best agent and the seed then try the holdout
tasks. What a search came to is kept beside this file (``offline.jsonl``), so that only what is missing is performed.
Two workers never finish in the same order, so that the same searches come to something else each time: with ``--again``
they are performed once more, and a second table is of all times together.

A changed policy, seed agent, suite or offline model is noticed: what is kept of other ones is not counted, but where
``same_as`` says that these searches hardly ever meet what has changed. When the loop, the sandboxes or the grading
have changed, remove ``offline.jsonl`` and ``dist/offline``.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from blocks import check, fill_in, whole_lines
from commands import exit_code, finish

from dgm.archive.durable import write_durably
from dgm.simulation.fingerprint import fingerprint
from dgm.stats import paired_bootstrap

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = HERE / "offline.jsonl"
PAGE = HERE.parent / "policies.md"
ARCHIVE = ROOT / "dist" / "offline"
PROGRAM = (sys.executable, "-m", "dgm")
POLICIES = ("lineage", "hgm", "dgm", "best-of-n")
SETTING = {
    "archive/seeds/plain": "archive/seed",
    "benchmarks/starter": "benchmarks/starter",
    "dgm/offline": "dgm/offline",
}
"""What a result depends on beside its policy: folder → the name that it had when the first results were kept."""
COMPARED = ("mean [95 %]", "to the seed agent [95 %]", "to `hgm` [95 %]", "won, tied, lost")
EVALUATIONS = 120
WORKERS = 2
LARGE = 10_000
"""A budget that the rule on the seed's share is not met in: none of these searches meets it either, with 36 of 120
evaluations for the seed at most before it has a child, and 40 while it is made."""
Found = dict[str, Any]
"""What a search is and came to: a line of ``offline.jsonl``."""


def main() -> int:
    """Seeds in the outermost turn, so that what is there early is already paired."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", type=_several, default=10, help="of each policy (default 10)")
    parser.add_argument(
        "--again", action="store_true", help="once more, and count all that is kept beside it"
    )
    arguments = parser.parse_args()
    check(PAGE, ["offline", "times"])
    kept = {_key(_counted(found)): found for found in map(json.loads, whole_lines(KEPT))}
    last = max((found["time"] for found in kept.values() if _is_current(found)), default=1) + arguments.again
    seeds = range(1, arguments.searches + 1)
    for one in [what(policy, seed, last) for seed in seeds for policy in POLICIES]:
        if _key(one) not in kept:
            kept[_key(one)] = one | search(one)
            write_durably(KEPT, "".join(json.dumps(found) + "\n" for found in kept.values()).encode())
    current = list(filter(_is_current, kept.values()))
    then = [found for found in current if found["time"] == last]
    fill_in(PAGE, {"offline": table(then), "times": all_times(current)})
    return 0


def _several(text: str) -> int:
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError("an interval wants 2 searches or more")
    return number


def what(policy: str, seed: int, time: int) -> Found:
    """All that says which search it is."""
    version = hashlib.sha256(f"{fingerprint(policy, 'drift', LARGE)} {_setting()}".encode()).hexdigest()[:16]
    return {
        "time": time,
        "policy": policy,
        "seed": seed,
        "version": version,
        "evaluations": EVALUATIONS,
        "workers": WORKERS,
    }


@cache
def _setting() -> str:
    digest = hashlib.sha256()
    files = [
        (Path(name, path.relative_to(ROOT / folder)), path)
        for folder, name in SETTING.items()
        for path in (ROOT / folder).rglob("*")
    ]
    for name, path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _key(found: Found) -> tuple[Any, ...]:
    return tuple(found[name] for name in ("time", "policy", "seed", "version", "evaluations", "workers"))


def _counted(found: Found) -> Found:
    """As what it counts: of the rules that it says it was performed by, or of those that are as good as the same."""
    return found | {"version": found.get("same_as", found["version"])}


def _is_current(found: Found) -> bool:
    """Whether the code of now would search by the same rules."""
    return _key(_counted(found)) == _key(what(found["policy"], found["seed"], found["time"]))


def search(one: Found, program: Sequence[str] = PROGRAM) -> Found:
    """One search, gone on with where it was stopped, and its examination.

    Raises:
        subprocess.CalledProcessError: a command failed.
        KeyboardInterrupt: one was interrupted.
        SystemExit: it ended before its evaluations, or its examination before all of its tasks; the next start goes on.
    """
    name = "-".join(map(str, _key(one)))
    arguments = ["resume", name]
    if not (ARCHIVE / name).exists():
        arguments = ["run", "--name", name, "--model", "offline", "--sandbox", "bubblewrap"]
        arguments += ["--policy", one["policy"]]
        arguments += ["--seed", str(one["seed"]), "--workers", str(WORKERS)]
        arguments += ["--max-evaluations", str(EVALUATIONS)]
    _said(program, *arguments)
    status = json.loads(_said(program, "status", name, "--json"))
    said = json.loads(_said(program, "report", name, "--holdout", "--json"))
    graded, holdout = status["evaluations"]["graded"], said["holdout"]
    if graded != EVALUATIONS:
        sys.exit(
            f"{name}: {status['state']} after {graded} of {EVALUATIONS} evaluations; start this again to go on"
        )
    if left := holdout["missing"] + holdout["ungraded"]:
        sys.exit(f"{name}: {left} holdout tasks have no verdict; start this again to go on")
    return {
        "agents": status["agents"],
        "tokens": status["spend"]["tokens"],
        "depth": said["best"]["depth"],
        "tasks": holdout["tasks"],
        "seed_resolved": holdout["seed"]["resolved"],
        "best_resolved": holdout["best"]["resolved"],
    }


def _said(program: Sequence[str], *arguments: str) -> str:
    return finish([*program, *arguments], {**os.environ, "DGM_ARCHIVE": str(ARCHIVE)})


def table(found: Sequence[Found]) -> str:
    """A row for each policy: what its searches took and came to, beside their seed agents and in pairs with ``hgm``."""
    tasks = max((line["tasks"] for line in found), default=0)
    columns = ("policy", "agents", "depth", "million tokens", f"resolved of {tasks}, each", *COMPARED)
    rows = [f"| {' | '.join(columns)} |", "|---|---:|---:|---:|---|---:|---:|---:|---:|"]
    for policy in POLICIES:
        own = sorted((line for line in found if line["policy"] == policy), key=lambda line: int(line["seed"]))
        if len(_pairs(found, policy)) < 2:
            continue
        counts = ", ".join(str(line["best_resolved"]) for line in own)
        agents, depth, tokens = (fmean(line[key] for line in own) for key in ("agents", "depth", "tokens"))
        took = f"{agents:.0f} | {depth:.1f} | {tokens / 1e6:.1f} | {counts}"
        rows.append(f"| {policy} | {took} | {' | '.join(_compared(found, policy))} |")
    return "\n".join(rows)


def all_times(found: Sequence[Found]) -> str:
    """A row for each time that the searches were performed and one for all of them; then one for each policy in all."""
    return "\n".join([*_by_time(found), "", *_by_policy(found)])


def _by_time(found: Sequence[Found]) -> Iterator[str]:
    columns = ("time", *(f"`{policy}`" for policy in POLICIES), f"`lineage` {COMPARED[2]}", COMPARED[3])
    yield f"| {' | '.join(columns)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    times = sorted({line["time"] for line in found})
    for name, those in [*((str(time), [time]) for time in times), ("**all**", times)]:
        then = [line for line in found if line["time"] in those]
        if all(len(_pairs(then, policy)) >= 2 for policy in POLICIES):
            means = [_compared(then, policy)[0].partition(" ")[0] for policy in POLICIES]
            yield f"| {' | '.join([name, *means, *_compared(then, 'lineage')[2:]])} |"


def _by_policy(found: Sequence[Found]) -> Iterator[str]:
    columns = ("policy", "searches", *COMPARED, "worse than the seed agent", "the seed agent itself")
    yield f"| {' | '.join(columns)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for policy in POLICIES:
        own = [line for line in found if line["policy"] == policy]
        if len(_pairs(found, policy)) >= 2:
            worse = sum(line["best_resolved"] < line["seed_resolved"] for line in own)
            itself = sum(line["depth"] == 0 for line in own)
            yield f"| {policy} | {len(own)} | {' | '.join(_compared(found, policy))} | {worse} | {itself} |"


def _compared(found: Sequence[Found], policy: str) -> tuple[str, ...]:
    """The columns ``COMPARED``."""
    own = [line for line in found if line["policy"] == policy]
    gains = [(line["seed"], line["best_resolved"] - line["seed_resolved"]) for line in own]
    pairs = _pairs(found, policy)
    won, tied = sum(pair > 0 for _, pair in pairs), sum(pair == 0 for _, pair in pairs)
    return (
        _with_interval([(line["seed"], line["best_resolved"]) for line in own], ".1f"),
        _with_interval(gains, "+.1f"),
        "–" if policy == "hgm" else _with_interval(pairs, "+.1f"),
        "–" if policy == "hgm" else f"{won}, {tied}, {len(pairs) - won - tied}",
    )


def _pairs(found: Sequence[Found], policy: str) -> list[tuple[int, int]]:
    """Each seed, and what it resolved more than ``hgm`` with the same seed at the same time."""
    best = {(line["time"], line["seed"], line["policy"]): line["best_resolved"] for line in found}
    return [
        (seed, resolved - best[time, seed, "hgm"])
        for (time, seed, name), resolved in best.items()
        if name == policy and (time, seed, "hgm") in best
    ]


def _with_interval(values: Iterable[tuple[int, int]], form: str) -> str:
    """The mean of what goes with seeds; a seed that was performed several times counts once, with its mean."""
    by_seed: defaultdict[int, list[int]] = defaultdict(list)
    for seed, value in values:
        by_seed[seed].append(value)
    means = [fmean(several) for several in by_seed.values()]
    low, high = paired_bootstrap(means)
    return f"{fmean(means):{form}} [{low:{form}}, {high:{form}}]"


if __name__ == "__main__":
    sys.exit(exit_code(main))

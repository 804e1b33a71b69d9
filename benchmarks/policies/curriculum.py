"""Simulate searches with a curriculum and without, in worlds where most tasks are solved by nearly all or hardly any.

The worlds are the family ``extremes``. The real loop searches each of them with the same budget of evaluations and the
same policy three times: on all 60 search tasks, on 20 of them for good, and on 20 of them with the other 40 as the pool
of a curriculum. A world gives equal verdicts to equal questions, so the searches are paired. The score is the true one
of the recommended agent, over all 500 tasks of a world. All searches recommend by the rule of ``lineage``.

Run it as ``python benchmarks/policies/curriculum.py``: it takes about five minutes on one core, and writes
``curriculum.csv`` (a row per search) and ``curriculum.md`` beside it. Searches that ``curriculum.csv`` holds are not
repeated.
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dgm.simulation.trial import Trial, perform, quiet
from dgm.stats import paired_bootstrap

HERE = Path(__file__).parent
FAMILY, WORLDS, BUDGET = "extremes", 60, 300
POLICIES = {"hgm": "hgm+recommendation=lineage", "lineage": "lineage"}
NEVER = 1_000_000
"""Agents that must agree on a task: more than there are, so that no task is ever retired."""
SUITES = {
    "all 60 tasks": "",
    "20 fixed tasks": f"+curriculum.start=20+curriculum.agents={NEVER}",
    "curriculum of 20 tasks": "+curriculum.start=20",
}
FIELDS = ("policy", "suite", "world", "final", "root", "best", "agents", "evaluations")


def main() -> None:
    """Simulate what is missing, and write the table."""
    quiet()
    file = HERE / "curriculum.csv"
    rows = list(csv.DictReader(file.open())) if file.exists() else []
    done = {(row["policy"], row["suite"], int(row["world"])) for row in rows}
    with file.open("a", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        if not rows:
            writer.writerow(FIELDS)
        for world in range(WORLDS):
            for policy, name in POLICIES.items():
                for suite, settings in SUITES.items():
                    if (policy, suite, world) not in done:
                        result = perform(Trial(name + settings, FAMILY, world, BUDGET))
                        scores = [f"{score:.4f}" for score in (result.final, result.root, result.best)]
                        writer.writerow([policy, suite, world, *scores, result.agents, result.evaluations])
            out.flush()
            sys.stderr.write(f"\r{world + 1} of {WORLDS}")
    (HERE / "curriculum.md").write_text("\n".join(table(list(csv.DictReader(file.open())))) + "\n")


def table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of the table: means over worlds, and paired differences from the search on all tasks."""
    yield "| policy | search tasks | true score | difference [95 %] | better | worse |"
    yield "|---|---|---|---|---|---|"
    finals = {(row["policy"], row["suite"], int(row["world"])): float(row["final"]) for row in rows}
    worlds = sorted({world for _, _, world in finals})
    for policy in POLICIES:
        for suite in SUITES:
            scores = [finals[policy, suite, world] for world in worlds]
            gains = [finals[policy, suite, world] - finals[policy, "all 60 tasks", world] for world in worlds]
            score, gain = (sum(values) / len(worlds) for values in (scores, gains))
            low, high = paired_bootstrap(gains)
            better, worse = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
            difference = (
                f"{gain:+.3f} [{low:+.3f}, {high:+.3f}] | {better} | {worse}" if any(gains) else "| | "
            )
            yield f"| {policy} | {suite} | {score:.3f} | {difference} |"


if __name__ == "__main__":
    main()

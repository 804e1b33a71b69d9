"""Run every preset for a few evaluations with the offline model, and print the table of docs/designs.md.

Runs lie in ``dist/presets``. One that is there is continued, so the script may be stopped and started again.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import dgm
from dgm.paths import preset_names
from dgm.render.fmt import tally_interval

ARCHIVE = Path(__file__).parents[2] / "dist" / "presets"
HEADER = "| preset | policy | operator | seed | evaluations | agents | stillborn | best agent | seed agent |"


def main() -> None:
    """Perform what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("presets", nargs="*", help="names of presets; all by default")
    parser.add_argument("--evaluations", type=int, default=20, help="of each run")
    parser.add_argument("--sandbox", default="auto", help="where agents run")
    parser.add_argument("--model", default="offline", help="the model that agents are lent")
    arguments = parser.parse_args()
    os.environ["DGM_ARCHIVE"] = str(ARCHIVE)
    print(HEADER)
    print("|---|---|---|---|---:|---:|---:|---|---|")
    for preset in arguments.presets or preset_names():
        cells = run(preset, arguments.evaluations, model=arguments.model, sandbox=arguments.sandbox)
        print("| " + " | ".join(cells) + " |", flush=True)


def run(preset: str, evaluations: int, **options: str) -> Sequence[str]:
    """Perform or finish the run of a preset; return its row."""
    if (ARCHIVE / preset).exists():
        search = dgm.open(preset).resume()
    else:
        search = dgm.evolve(preset=preset, name=preset, max_evaluations=evaluations, **options)
    with search:
        settings, tree = search.run.config["settings"], search.run.tree
        best = search.best
        return (
            f"`{preset}`",
            settings["policy"]["name"],
            settings["operator"],
            settings["seed_agent"] or "plain",
            str(tree.evaluations),
            str(len(tree.agents)),
            str(sum(tree.stillborn.values())),
            f"{best.id}: {tally_interval(best.own)}",
            tally_interval(search.agents[0].own),
        )


if __name__ == "__main__":
    main()

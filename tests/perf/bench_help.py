"""How long ``dgm --help`` takes, against a Python that does nothing; the bound is 3 times as long."""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROUNDS = 30


def seconds(command: list[str]) -> float:
    """One run of a command."""
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Prints both medians, measured in turn, and their ratio."""
    nothing = [sys.executable, "-c", "pass"]
    commands = {"dgm --help": [str(Path(sys.executable).with_name("dgm")), "--help"]}
    commands["dgm run --help"] = [commands["dgm --help"][0], "run", "--help"]
    times: dict[str, list[float]] = {name: [] for name in ("python -c pass", *commands)}
    for _ in range(ROUNDS):
        times["python -c pass"].append(seconds(nothing))
        for name, command in commands.items():
            times[name].append(seconds(command))
    base = median(times["python -c pass"])
    for name, measured in times.items():
        print(f"{name:<16} {median(measured) * 1000:7.1f} ms   {median(measured) / base:5.2f} x")


if __name__ == "__main__":
    main()

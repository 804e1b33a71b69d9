"""Kill a search with SIGKILL at random moments, resume it each time, and audit what is left."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from dgm.sandboxes import scratch

DGM = [sys.executable, "-m", "dgm"]


@dataclass(frozen=True)
class Trial:
    """How long a search and how many deaths."""

    evaluations: int
    kills: int
    sandbox: str
    pause_s: tuple[float, float]
    """How long a session may live after its first event; every fourth is counted from the start of its process, so
    that some die before they write anything."""


def perform(trial: Trial, archive: Path) -> dict[str, object]:
    """Runs the trial in ``archive`` and returns the audit."""
    environment = {**os.environ, "DGM_ARCHIVE": str(archive)}
    chance = Random(1)
    first = ["run", "--model", "offline", "--name", "killed", "--seed", "5"]
    first += ["--max-evaluations", str(trial.evaluations)]
    first += ["--workers", "4", "--set", f"sandbox={trial.sandbox}"]
    command, killed, began = first, 0, time.monotonic()
    while True:
        written = _events(archive / "killed" / "run.db")
        with (archive / "output.txt").open("ab") as output:
            process = subprocess.Popen(
                DGM + command, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                if killed % 4:
                    _wait_for_event(archive / "killed" / "run.db", written, process)
                process.wait(chance.uniform(*trial.pause_s) if killed < trial.kills else None)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                killed += 1
        if process.returncode >= 0:
            break
        command = ["resume", "killed"] if (archive / "killed" / "run.json").exists() else first
    if not (archive / "killed" / "run.json").exists():
        raise SystemExit((archive / "output.txt").read_text())
    return {
        **audit(archive / "killed"),
        "killed": killed,
        "exit": process.returncode,
        "seconds": time.monotonic() - began,
    }


def _wait_for_event(log: Path, written: int, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None and _events(log) == written:
        time.sleep(0.05)


def _events(log: Path) -> int:
    """The number of the last event; 0 where there is no log yet."""
    try:
        with closing(sqlite3.connect(f"file:{log}?mode=ro", uri=True)) as connection:
            return int(connection.execute("select coalesce(max(seq), 0) from events").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def audit(folder: Path) -> dict[str, object]:
    """Counts what must hold of a run that was killed and resumed."""
    connection = sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)

    def ask(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    fsck = subprocess.run(
        ["git", "-C", str(folder / "agents.git"), "fsck", "--full", "--strict"],
        capture_output=True,
        check=False,
    )
    counted = "verdict in ('resolved', 'unresolved')"
    return {
        "graded": ask(f"select count(*) from evaluations where {counted}"),
        "graded_twice": ask(
            f"select count(*) from (select 1 from evaluations where {counted}"
            " group by agent, task, attempt having count(*) > 1)"
        ),
        "calls": ask("select count(*) from spend where kind = 'model_called'"),
        "calls_twice": ask(
            "select count(*) from (select 1 from spend where kind = 'model_called'"
            " group by action, number having count(*) > 1)"
        ),
        "sessions": ask("select count(*) from events where kind = 'run_started'"),
        "lost_actions": ask("select count(*) from events where kind = 'action_lost'"),
        "performed_again": ask(
            "select count(*) from events where kind = 'action_started' and json_extract(body, '$.again')"
        ),
        "agents": ask("select count(*) from agents"),
        "fsck": fsck.returncode,
        "leftovers": leftovers(folder),
    }


def leftovers(folder: Path) -> list[str]:
    """Containers and sandboxes with the run's label, and processes of a sandbox whose folder is gone."""
    run_id = json.loads((folder / "run.json").read_text())["config"]["id"]
    found = [line for line in _containers(run_id).splitlines() if line]
    found += [place.name for place, note in scratch.list_sandboxes() if note.labels.get("dgm.run") == run_id]
    for process in Path("/proc").iterdir():
        place = re.search(r"/tmp/dgm-sandboxes-\d+/dgm-[0-9a-f]{16}", _command(process))
        # Read once more: a sandbox of another test may end between the two looks, its processes first.
        if place and not Path(place[0]).exists() and (command := _command(process)):
            found.append(command)
    return found


def _command(process: Path) -> str:
    """The command line of a process; nothing of one that has ended."""
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _containers(run_id: str) -> str:
    try:
        listed = subprocess.run(
            ["docker", "ps", "-aq", "--filter", f"label=dgm.run={run_id}"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return listed.stdout

"""The same search twice on a provider's model, without faults and with them, and whether the archives are the same."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.hosted import ANSWERED, KEY, PROVIDERS, TWICE, Provider, count, faults, rows
from tests.support.wire_server import Config, Offline, Script, WireServer

TIMEOUT_S = 3.0
"""Without a byte: longer than the offline model thinks on a busy machine, short enough to wait for it often."""


@dataclass(frozen=True)
class Trial:
    """A search, and how much goes wrong in its second performance."""

    provider: str
    evaluations: int
    faults: float


@dataclass(frozen=True)
class Performed:
    """One search and what its provider saw of it."""

    folder: Path
    answered: int
    faults: dict[str, int]
    seconds: float


def perform(trial: Trial, archive: Path) -> dict[str, object]:
    """Searches twice in ``archive``; what came of it, ``same`` foremost."""
    plain = _search(trial, archive, "plain", Script())
    faulty = _search(trial, archive, "faulty", faults(trial.faults, 1, TIMEOUT_S))
    one, two = _archive(plain.folder), _archive(faulty.folder)
    differ = [name for name in one if one[name] != two[name]]
    twice = [row for each in (plain, faulty) for row in _twice(each.folder)]
    lost = [each.answered - count(each.folder, ANSWERED) for each in (plain, faulty)]
    failed = sum(faulty.faults.values())
    return {
        "provider": trial.provider,
        "same": not differ and not twice,
        "differ": differ,
        "agents": len(two["commits"]),
        "evaluations": len(two["verdicts"]),
        "resolved": sum(row[3] == "resolved" for row in two["verdicts"]),
        "calls": [len(one["calls"]), len(two["calls"])],
        "calls_twice": len(twice),
        "answered_but_not_journaled": lost,
        "faults": failed,
        "share": round(failed / max(1, failed + faulty.answered), 3),
        "kinds": dict(sorted(faulty.faults.items())),
        "seconds": [round(plain.seconds, 1), round(faulty.seconds, 1)],
    }


def _search(trial: Trial, archive: Path, name: str, script: Script) -> Performed:
    provider = PROVIDERS[trial.provider]
    config = Config(key=KEY, models=(provider.own_name,), brain=Offline(), script=script)
    began = time.monotonic()
    with WireServer(config) as server:
        done = subprocess.run(
            _command(trial, provider, server.url, name),
            env={**os.environ, "DGM_ARCHIVE": str(archive), provider.key_env: KEY},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{name}: exit {done.returncode}\n{done.stderr[-3000:]}")
        told = {str(kind): count for kind, count in server.faults.items()}
        return Performed(archive / name, server.answered, told, time.monotonic() - began)


def _command(trial: Trial, provider: Provider, url: str, name: str) -> list[str]:
    words = [
        sys.executable,
        "-m",
        "dgm",
        "run",
        "--name",
        name,
        "--set",
        "sandbox=bubblewrap",
        "--workers",
        "1",
    ]
    words += ["--max-evaluations", str(trial.evaluations), "--seed", "1", "--json"]
    words += ["--agent", "plain"]
    return words + provider.words(url, timeout_s=TIMEOUT_S)


def _archive(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """What must not depend on faults. Token counts do depend on the timings that tests print."""
    wanted = {
        "commits": "select id, parents, commit_id, operator from agents order by id",
        "verdicts": "select agent, task, attempt, verdict, reason from evaluations order by agent, task, attempt",
        "calls": "select action, number, model, role from spend where kind = 'model_called' order by action, number",
        "decisions": "select action, body from events where kind = 'action_started' order by seq",
    }
    return {name: rows(folder, query) for name, query in wanted.items()}


def _twice(folder: Path) -> list[tuple[object, ...]]:
    return rows(folder, f"select * from {TWICE}")

"""Searches on a Ray cluster of this machine while every kind of failure is injected, and audits what is left.

``python tests/ray/fault_run.py --evaluations 200 --times 3`` prints the audit of a full trial as JSON, and exits 1
where something was lost, paid or graded twice, or left behind. It needs Ray, bubblewrap and about 6 GB of memory. The
failures:

* ``head``: SIGKILL of the search, which is then resumed;
* ``node``: all processes of a node that is at work are killed, and a new node joins;
* ``stall``: the process of a node that opens its sandboxes stands still for a minute;
* ``engine``: the engine of a node starts nothing any more, and works again later.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

# Also when it is started as a program.
sys.path.insert(0, str(Path(__file__).parents[2]))

from dgm.archive.events import CallBooked, ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.sandboxes.scratch import list_sandboxes
from tests.e2e.killing import audit
from tests.support.hosted import ANSWERED, KEY, PROVIDERS, count, rows
from tests.support.wire_server import Config, Offline, WireServer

KINDS = ("head", "node", "stall", "engine")
NAME = "faulty"
PROVIDER = PROVIDERS["openai-chat"]
DEAD_S = 20.0
LEFT_S = 30.0
STORE_BYTES = 100 * 2**20
_WRAPPER = """\
#!/bin/sh
[ -e {folder}/dead ] && exit 1
exec {bwrap} "$@"
"""
_HEARD = "heard.log"
_LISTEN = """\
import os
if "FAULT_HEARD" in os.environ:
    # In the search: which call of its action each performance was answered by, in order.
    import logging
    _log = logging.FileHandler(os.environ["FAULT_HEARD"])
    _log.setFormatter(logging.Formatter("%(process)d %(message)s"))
    _log.addFilter(lambda record: ": has call " in record.getMessage())
    _gateway = logging.getLogger("dgm.gateway.call")
    _gateway.setLevel(logging.DEBUG)
    _gateway.addHandler(_log)
"""


@dataclass(frozen=True)
class Trial:
    """The length of a search, and how often each kind of failure comes."""

    evaluations: int = 200
    times: int = 3
    workers: int = 3
    seed: int = 3
    stall_s: float = 60.0
    nodes: int = 3


@dataclass(frozen=True)
class Paid:
    """Calls that were paid for, as the log of a run tells of them."""

    again: int
    """Answers that an action had paid for, and that a performance which paid for a later equal one was never given."""
    repeated: int
    """Further equal requests that an agent made in one performance of an action."""
    cut: int
    """Calls that were under way when the search was killed."""


class FaultyCluster:
    """A head without processors, and nodes that can fail in every way."""

    def __init__(self, place: Path, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        Path(tempfile.gettempdir(), "ray").mkdir(exist_ok=True)
        self._place = place
        self._made = 0
        self._folders: dict[str, Path] = {}
        (place / "listen").mkdir()
        (place / "listen" / "sitecustomize.py").write_text(_LISTEN)
        os.environ["PYTHONPATH"] = f"{place / 'listen'}:{Path(__file__).parents[2]}"
        common = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
        self.nodes = [self.add() for _ in range(nodes)]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self):
        """Start a node; its engine can be made to fail."""
        self._made += 1
        folder = self._place / f"node-{self._made}"
        folder.mkdir()
        path, bwrap = os.environ["PATH"], subprocess.check_output(["which", "bwrap"], text=True).strip()
        wrapper = folder / "bwrap"
        wrapper.write_text(_WRAPPER.format(folder=folder, bwrap=bwrap))
        wrapper.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{path}"
        try:
            node = self._cluster.add_node(num_cpus=2, object_store_memory=STORE_BYTES, memory=4 * 2**30)
        finally:
            os.environ["PATH"] = path
        self._folders[node.node_id] = folder
        return node

    def choose(self, chance: Random):
        """Return a node that is at work, or any."""
        busy = {note.labels.get("dgm.node") for _, note in list_sandboxes()}
        return chance.choice([node for node in self.nodes if node.node_id in busy] or self.nodes)

    def replace(self, node) -> None:
        """Kill all processes of a node, and start another."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self.add())

    def break_engine(self, node, seconds: float) -> None:
        """Make the engine of a node fail for a while."""
        mark = self._folders[node.node_id] / "dead"
        mark.touch()
        threading.Timer(seconds, mark.unlink, [True]).start()

    def stall(self, node, seconds: float) -> None:
        """Let the process stand still that opens a node's sandboxes."""
        raylet = node.all_processes["raylet"][0].process.pid
        listed = subprocess.check_output(["ps", "--ppid", str(raylet), "-o", "pid=,args="], text=True)
        for line in listed.splitlines():
            pid, _, words = line.strip().partition(" ")
            if words.strip().startswith("ray::Node"):
                os.kill(int(pid), signal.SIGSTOP)
                threading.Timer(seconds, _go_on, [int(pid)]).start()

    def shutdown(self) -> None:
        self._cluster.shutdown()


def _go_on(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass  # its node was killed meanwhile


class Search:
    """The search as a process that can be killed and resumed."""

    def __init__(self, trial: Trial, archive: Path, address: str, url: str) -> None:
        self.folder = archive / NAME
        self._output = archive / "output.txt"
        self._engine = ["--set", f"engine=ray://{address}"]
        self.heard = archive / _HEARD
        self._environment = {
            **os.environ,
            "DGM_ARCHIVE": str(archive),
            PROVIDER.key_env: KEY,
            "FAULT_HEARD": str(self.heard),
        }
        settings = ("scale.node_engine=bubblewrap", "limits.check_s=60")
        given = [*self._engine, "--workers", str(trial.workers), "--seed", str(trial.seed)]
        given += ["--max-evaluations", str(trial.evaluations), "--agent", "plain"]
        given += [word for each in settings for word in ("--set", each)]
        self.process = self._start("run", "--name", NAME, *given, *PROVIDER.words(url))

    def kill(self) -> None:
        """Kill it, and resume it."""
        self.process.kill()
        self.process.wait()
        self.process = self._start("resume", NAME, *self._engine)

    def graded(self) -> int:
        return count(self.folder, "events where kind = 'task_graded'")

    def wait_for(self, graded: int) -> bool:
        """Wait until so many tasks are graded; return False if the search ended before."""
        while self.graded() < graded:
            if self.process.poll() is not None:
                return False
            time.sleep(0.2)
        return True

    def say(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "dgm", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        with self._output.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "dgm", *words],
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


def perform(trial: Trial, place: Path) -> dict[str, object]:
    """Run the trial in ``place`` and return the audit."""
    chance, began = Random(trial.seed), time.monotonic()
    cluster = FaultyCluster(place, trial.nodes)
    try:
        with WireServer(Config(key=KEY, models=(PROVIDER.own_name,), brain=Offline())) as server:
            search = Search(trial, place, cluster.address, server.url)
            injected = _inject(trial, cluster, search, chance)
            search.process.wait()
            seconds = time.monotonic() - began
            found = _audit(search, server)
    finally:
        cluster.shutdown()
    return {
        "exit": search.process.returncode,
        "injected": injected,
        "seconds": round(seconds),
        **found,
        "output": search.output[-2000:] if search.process.returncode else "",
    }


def _inject(trial: Trial, cluster: FaultyCluster, search: Search, chance: Random) -> dict[str, int]:
    plan = list(KINDS) * trial.times
    chance.shuffle(plan)
    injected: Counter[str] = Counter()
    for number, kind in enumerate(plan, 1):
        if not search.wait_for(number * trial.evaluations // (len(plan) + 1)):
            break
        print(f"{search.graded()} graded: {kind}", file=sys.stderr, flush=True)
        node = cluster.choose(chance)
        match kind:
            case "head":
                search.kill()
            case "node":
                cluster.replace(node)
            case "stall":
                cluster.stall(node, trial.stall_s)
            case "engine":
                cluster.break_engine(node, DEAD_S)
        injected[kind] += 1
    return dict(injected)


def _audit(search: Search, server: WireServer) -> dict[str, object]:
    ends = time.monotonic() + LEFT_S
    while (found := audit(search.folder))["leftovers"] and time.monotonic() < ends:
        time.sleep(1)
    paid = read_paid(search.folder, search.heard)
    in_log = count(search.folder, ANSWERED)
    replay = search.say("replay", NAME, "--json")
    return {
        **found,
        "why": dict(_find_reasons(search.folder).most_common()),
        "invalid": count(search.folder, "evaluations where verdict = 'invalid'"),
        "answers_of_the_provider": server.answered,
        "answers_in_the_log": in_log,
        "cut_by_a_kill": paid.cut,
        "performed_twice_at_once": search.output.count("is performed a second time"),
        "lost": max(0, server.answered - in_log - paid.cut),
        "paid_twice": paid.again,
        "asked_twice_in_one_performance": paid.repeated,
        "replay_exit": replay.returncode,
        "replay": json.loads(replay.stdout) if replay.stdout.startswith("{") else replay.stderr[-500:],
    }


def read_paid(folder: Path, heard: Path) -> Paid:
    """Return what a run's log tells of calls that were paid for.

    Args:
        folder: of the run.
        heard: a line for each answered call: process, action, performance and number of the call.
    """
    numbers: dict[tuple[int, str], list[int]] = {}
    cut = 0
    with Run.open(folder) as run:
        reader = CallReader(run.store)
        for recorded in run.store.read():
            match recorded.event:
                case ModelCalled(action, number) as call:
                    request = reader.request(call)
                    body = json.dumps(getattr(request, "body", str(request)), sort_keys=True)
                    numbers.setdefault((action, body), []).append(number)
                case CallBooked():
                    cut += 1
        cut += len(run.tree.model_calls.cut)
    performances: dict[int, dict[str, list[int]]] = {}
    for line in heard.read_text().splitlines():
        process, _, action, _, performance, *_, number = re.split(r"[ ,:]+", line)
        by = performances.setdefault(int(action), {})
        by.setdefault(f"{process} {performance}", []).append(int(number))
    again = repeated = 0
    for (action, _), same in numbers.items():
        if len(same) < 2:
            continue
        repeated += len(same) - 1
        for has in performances.get(action, {}).values():
            # It bought the last of the calls that it has; an earlier one that it was never given was paid in vain.
            mine = [number for number in same if number in has]
            again += sum(number < max(mine) and number not in has for number in same) if mine else 0
    return Paid(again, repeated - again, cut)


def _find_reasons(folder: Path) -> Counter[str]:
    """Return why actions were lost or invalid, without ids and seconds."""
    query = "select json_extract(body, '$.reason') from events where kind = 'action_lost'"
    invalid = "select reason from evaluations where verdict = 'invalid'"
    said = [str(reason) for (reason,) in [*rows(folder, query), *rows(folder, invalid)]]
    return Counter(re.sub(r"\([0-9a-f]{6}\)|\d+(\.\d+)+|\d+ s\b", "…", each)[:160] for each in said)


def main() -> int:
    """Run one trial from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, kind, default in (
        ("evaluations", int, Trial.evaluations),
        ("times", int, Trial.times),
        ("workers", int, Trial.workers),
        ("seed", int, Trial.seed),
        ("stall_s", float, Trial.stall_s),
    ):
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, type=kind, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dgm-faults-") as scratch:
        os.environ |= {"HOME": scratch, "RAY_USAGE_STATS_ENABLED": "0"}
        found = perform(Trial(**vars(given)), Path(scratch))
    print(json.dumps(found, indent=2))
    wrong = [
        name for name in ("exit", "graded_twice", "calls_twice", "paid_twice", "lost", "fsck") if found[name]
    ]
    return 1 if wrong or found["leftovers"] or found["replay_exit"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""A real search that asks a person: it goes on meanwhile, is killed while a child waits, and takes later answers."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from dgm import open as dgm_open
from tests.support.program import OFFLINE, PATIENCE_S

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

ASKING = ["gates.approve=true", "gates.flips=true", "vetting.probes=1"]


@pytest.fixture
def folder(dgm):
    return dgm.archive / "asked"


def bodies(folder, kind):
    """What the log says of a kind of event: place, action and body."""
    log = sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)
    try:
        rows = log.execute("SELECT seq, action, body FROM events WHERE kind = ? ORDER BY seq", (kind,))
        return [(seq, action, json.loads(body)) for seq, action, body in rows]
    finally:
        log.close()


def until(said, what, process=None, most_s=PATIENCE_S):
    end = time.monotonic() + most_s
    while not what():
        assert time.monotonic() < end, f"not in {most_s} s: {said}"
        assert process is None or process.poll() is None, f"it ended before: {said}"
        time.sleep(0.1)


def searching(dgm, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "dgm", *words],
        env=dgm.variables,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_a_search_goes_on_while_children_wait_and_takes_answers_that_were_given_while_it_was_dead(
    dgm, folder
):
    sets = [word for setting in ASKING for word in ("--set", setting)]
    flags = [
        *OFFLINE,
        "--seed",
        "3",
        "--workers",
        "2",
        "--name",
        "asked",
    ]
    search = searching(dgm, "run", *flags, "--max-evaluations", "60", *sets)
    try:
        until(
            "a child waits",
            lambda: (folder / "run.db").exists() and bodies(folder, "child_proposed"),
            search,
        )
        (asked, child, body), *_ = bodies(folder, "child_proposed")
        until("the search goes on", lambda: after(folder, asked) >= 1, search)
        assert (folder / "approvals" / f"{child}.diff").read_bytes().startswith(b"diff --git ")
        assert "waiting      " in dgm("status", "asked").stdout
    finally:
        os.kill(search.pid, signal.SIGKILL)
        search.wait()
    with dgm_open(dgm.archive / "asked") as run:
        run.verify()
    graded = len(bodies(folder, "task_graded"))

    assert "when the run is resumed: dgm resume asked" in dgm("approve", "asked", child, "yes").stdout
    others = [each["child"] for each in dgm.json("approve", "asked")["children"] if each["child"] != child]
    dgm("resume", "asked", "--max-evaluations", graded + 1)
    born = [each for _, action, each in bodies(folder, "agent_born") if action == child]
    assert [(each["id"], each["outcome"]["commit"], each["decided"]) for each in born] == [
        (1, body["outcome"]["commit"], "a person")
    ]
    assert all(each["flips"] for _, _, each in bodies(folder, "run_started"))

    waiting = [each["child"] for each in dgm.json("approve", "asked")["children"]]
    assert set(others) <= set(waiting)
    assert child not in waiting
    if waiting:
        for each in waiting:
            dgm("approve", "asked", each, "no", "--reason", "enough for today")
        dgm("resume", "asked", "--max-evaluations", graded + 2)
        dead = {action: each for _, action, each in bodies(folder, "agent_stillborn")}
        assert all(dead[each]["stage"] == "rejected" for each in waiting)
        assert all(dead[each]["reason"] == "enough for today" for each in waiting)
        dgm("approve", "asked", waiting[0], "yes", code=2)
    with dgm_open(dgm.archive / "asked") as run:
        run.verify()
    assert dgm.json("replay", "asked")["differing"] == 0


def after(folder, seq):
    return sum(graded > seq for graded, _, _ in bodies(folder, "task_graded"))

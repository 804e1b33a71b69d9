"""Calls that block a program: what Ctrl-C and the interrupt button of a notebook do to them."""

import subprocess
import sys

import pytest

from dgm.archive.events import Recorded, RunStopped
from dgm.blocking import ProgramWatcher

NOTEBOOK = """
import asyncio, os, signal, threading, time
from dgm.blocking import block

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

async def work(session):
    stopped = asyncio.Event()
    session.stops_by(lambda: not stopped.is_set() and (stopped.set() or True))
    threading.Timer(0.2, interrupt).start()
    await stopped.wait()
    await asyncio.sleep(0.2)
    if TWICE:
        threading.Timer(0.2, interrupt).start()
        await asyncio.Event().wait()
    return "in good order"

async def cell():
    try:
        print(block(work, None))
    except KeyboardInterrupt:
        print("at once")

# A background job of a shell begins with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.new_event_loop().run_until_complete(cell())
"""


@pytest.mark.starts_processes
@pytest.mark.parametrize(("twice", "printed"), [(False, "in good order"), (True, "at once")])
def test_a_notebook_is_interrupted_once_in_good_order_and_twice_at_once(twice, printed):
    program = f"TWICE = {twice}\n{NOTEBOOK}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.returncode) == (printed, 0), done.stderr


def test_what_a_listener_raises_is_not_lost_where_a_model_call_takes_it():
    heard = []

    def listen(recorded):
        heard.append(recorded)
        raise ZeroDivisionError

    watcher = ProgramWatcher(listen)
    for number in (1, 2):
        with pytest.raises(ZeroDivisionError):
            watcher.event(Recorded(number, 0.0, RunStopped("stopped")))
    assert len(heard) == 1

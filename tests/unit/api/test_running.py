"""Sessions of a program: what Ctrl-C and the interrupt button of a notebook do to them, and what they may spend."""

import subprocess
import sys

import pytest

from dgm.api.running import run_session
from dgm.api.watcher import Watcher, consent_to_pay
from dgm.archive.events import Recorded, RunStopped
from dgm.errors import UserError
from dgm.models.auto import Offer
from dgm.models.pricing import Prices

NOTEBOOK = """
import asyncio, os, signal, threading, time
from dgm.api.running import run_session
from dgm.api.watcher import Watcher

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

watcher = Watcher()

async def work():
    stopped = asyncio.Event()
    watcher.stops_by(lambda: not stopped.is_set() and (stopped.set() or True))
    threading.Timer(0.2, interrupt).start()
    await stopped.wait()
    await asyncio.sleep(0.2)
    if TWICE:
        threading.Timer(0.2, interrupt).start()
        await asyncio.Event().wait()
    return "in good order"

async def cell():
    try:
        print(run_session(work, watcher))
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


class Stoppable:
    """What a watcher asks of a search."""

    running, stopping = 0, False

    def ask_to_stop(self, _message):
        self.stopping = True


def test_a_stop_between_two_searches_of_a_session_stops_the_second():
    watcher, searches = Watcher(), [Stoppable() for _ in range(4)]

    async def perform(first, second, *, stopped):
        watcher.begins(first)
        if stopped:
            watcher.interrupt()
        watcher.begins(second)
        assert second.stopping is stopped

    run_session(lambda: perform(*searches[:2], stopped=True), watcher)
    run_session(lambda: perform(*searches[2:], stopped=False), watcher)


def test_what_a_listener_raises_is_not_lost_where_a_model_call_takes_it():
    heard = []

    def listen(recorded):
        heard.append(recorded)
        raise ZeroDivisionError

    watcher = Watcher(listen)
    for number in (1, 2):
        with pytest.raises(ZeroDivisionError):
            watcher.event(Recorded(number, 0.0, RunStopped("stopped")))
    assert len(heard) == 1


MODEL = "openai/gpt-6.2-sol"


def test_a_paid_model_is_used_after_a_yes_that_holds_for_terminal_and_program(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    offer = Offer("openai", MODEL, "OPENAI_API_KEY", None, Prices.load().of(MODEL))
    assert Watcher(allow_paid=True).may_use(offer)
    with pytest.raises(UserError, match=f"OPENAI_API_KEY is set; name {MODEL}") as error:
        Watcher().may_use(offer)
    assert error.value.argument == "model"
    for answer in (True, False):
        consent_to_pay("openai").agree(answer)
        assert Watcher().may_use(offer) is answer
    (file,) = (tmp_path / "dgm" / "agreed").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("{")
    with pytest.raises(UserError):
        Watcher().may_use(offer)

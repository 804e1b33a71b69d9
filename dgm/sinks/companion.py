"""The process beside a search that follows its log and feeds all receivers, so that none slows or harms the search.

The session starts it before anything is spent, which finds wrong addresses early, and names the run later. The process
ends when its session has ended and all is delivered. Its standard input says when that is: it ends with the session,
whatever ended that. Each receiver has a thread, a view of the log and a fate of its own.
"""

import json
import logging
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dgm.archive.durable import make_folder
from dgm.archive.run import Run, writer
from dgm.errors import ArchiveBusy, DgmError, Infrastructure, UserError
from dgm.processes import start_apart
from dgm.render.safe import one_line
from dgm.sinks.cursor import FOLDER, hold_deliveries
from dgm.sinks.feed import Feed
from dgm.sinks.notify import NotificationSink, open_targets
from dgm.sinks.sink import Sink, check_sink, hide_address, open_sink, resolve_address

if TYPE_CHECKING:
    from dgm.config import Settings

LOG, MARK = f"{FOLDER}/log", f"{FOLDER}/session"
"""Failures of the last session's receivers, and a file that says that there was a session with some."""
NICENESS = 10
"""Priority of the process, below the sandboxes and models of the search."""
START_S, END_S = 60.0, 5.0
"""Seconds that a session waits at most for the check of the addresses, and for the last deliveries."""
LOOK_S = 1.0
"""Seconds between two looks at the log."""
PAUSE_S, LONGEST_PAUSE_S = 2.0, 300.0
"""Seconds before a receiver that failed is tried again; doubled each time up to the longest."""
LAST_TRIES_S = 120.0
"""Seconds after the end of a session in which receivers that failed are tried again."""
BUSY_S = 300.0
"""Seconds that a process waits for the one of the session before it."""
STEP = 200
"""Number of events after which a receiver is told to deliver."""
MESSAGE_CELLS, LOG_LINES = 300, 5
_SECRET = re.compile(r"\S*(://|@)\S*|(?<=\burl: )\S+")
"""An address in the message of a library may hold a token."""
Opener = Callable[[Run], Sink]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Receivers:
    """The receivers of a session; no address is ``env:NAME`` any more."""

    sinks: tuple[str, ...]
    notify: tuple[str, ...]
    on_event: str | None
    events: tuple[str, ...]

    @classmethod
    def of(cls, settings: "Settings") -> "Receivers":
        """Return the receivers that settings name; raises ``UserError`` if a variable is not set."""
        sinks = [resolve_address(address, "sink") for address in settings.sinks.to]
        targets = [resolve_address(address, "notify") for address in settings.notify.to]
        return cls(
            tuple(dict.fromkeys(sinks)),
            tuple(dict.fromkeys(targets)),
            settings.notify.on_event,
            settings.notify.events,
        )

    def openers(self, since: int) -> Iterator[tuple[str, Opener]]:
        """Yield a name without secrets and a function that opens it, for each receiver.

        Args:
            since: number of the last event before the session.

        Raises:
            UserError: an address is not valid, or a library is missing.
        """
        for address in self.sinks:
            check_sink(address)
            yield hide_address(address), partial(open_sink, address)
        for target in open_targets(self.notify, self.on_event):
            yield hide_address(target.key), partial(NotificationSink, target, self.events, since)


# The session's side


@contextmanager
def start_companion(settings: "Settings") -> Iterator[Callable[[Run, int], None]]:
    """Start the process of a session whose settings name receivers, and lend the function that names the run to it.

    The function takes the run and the number of the last event before the session. At the end of the context, wait a
    few seconds for the last deliveries; the process goes on alone if they take longer.

    Raises:
        UserError: an address is not valid, or a library is missing.
    """
    receivers = Receivers.of(settings)
    if not (receivers.sinks or receivers.notify or receivers.on_event):
        yield _warn_of_silence
        return
    # Modules come from where this process has them: -m alone would look in the working folder first.
    words = [] if sys.path[0] in ("", str(Path.cwd())) else ["-P"]
    command = [sys.executable, *words, "-m", "dgm.sinks"]
    process = start_apart(command, cwd=Path.cwd(), env=os.environ, stderr=subprocess.DEVNULL)
    orders, answers = process.stdin, process.stdout
    assert orders is not None
    assert answers is not None
    log_file: Path | None = None
    try:
        _write_line(orders, asdict(receivers))
        answer = _read_answer(answers)
        if "problem" in answer:
            raise UserError(answer["problem"], argument=answer.get("argument", ""))

        def name_run(run: Run, since: int) -> None:
            nonlocal log_file
            log_file = run.folder / LOG
            _write_line(orders, {"folder": str(run.folder), "since": since})

        yield name_run
    finally:
        with suppress(OSError):
            orders.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        answers.close()
        if log_file is not None and log_file.exists():
            for line in log_file.read_text(errors="replace").splitlines()[-LOG_LINES:]:
                log.warning("%s", one_line(line, MESSAGE_CELLS))


def _write_line(orders: IO[bytes], record: Mapping[str, object]) -> None:
    """Write to the process; if it has died, its answer is missing, or the search goes on without it."""
    with suppress(OSError):
        orders.write(json.dumps(record).encode() + b"\n")
        orders.flush()


def _read_answer(output: IO[bytes]) -> dict[str, str]:
    line = output.readline() if select.select([output], [], [], START_S)[0] else b""
    answer: dict[str, str] = json.loads(line or b'{"problem": "the process of the sinks did not start"}')
    return answer


def _warn_of_silence(run: Run, since: int) -> None:
    """Warn if an earlier session had receivers."""
    del since
    if (run.folder / MARK).exists():
        log.warning("%s: no run records sinks and addresses to notify; this session has none", run.name)


# The process's side


def main() -> int:
    """Check the receivers on the first line of standard input, then follow the run on the second line."""
    os.nice(NICENESS)
    try:
        receivers = Receivers(**json.loads(sys.stdin.readline()))
        list(receivers.openers(0))
    except UserError as error:
        _answer({"problem": error.problem, "argument": error.argument})
        return 2
    _answer({})
    # Nobody reads what libraries print; a full pipe would stop them.
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    line = sys.stdin.readline()
    if not line:
        return 0
    order = json.loads(line)
    folder = Path(order["folder"])
    make_folder(folder / FOLDER)
    (folder / MARK).touch()
    (folder / LOG).unlink(missing_ok=True)
    logging.basicConfig(format="%(message)s", handlers=[logging.FileHandler(folder / LOG, delay=True)])
    over = threading.Event()
    threading.Thread(target=_wait_for_end, args=(over,), daemon=True).start()
    try:
        with _wait_for_deliveries(folder):
            threads = [
                threading.Thread(target=keep_delivering, args=(folder, *receiver, over))
                for receiver in receivers.openers(int(order["since"]))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    except ArchiveBusy as error:
        log.warning("%s; this session is delivered by the next one or by dgm export", error)
    return 0


def keep_delivering(folder: Path, name: str, opener: Opener, over: threading.Event) -> None:
    """Deliver a run to one receiver until its session is over; open it anew after each failure, after a pause."""
    pause, last, deadline = PAUSE_S, "", 0.0
    while True:
        try:
            deliver(folder, opener, over)
        except UserError as error:
            log.warning("%s %s", name, describe_failure(error))
            return
        except Exception as error:  # noqa: BLE001  (libraries raise anything, and nothing here may end the others)
            text = describe_failure(error)
            if text != last:
                log.warning("%s %s", name, text)
            last = text
        else:
            return
        if over.is_set():
            deadline = deadline or time.monotonic() + LAST_TRIES_S
            if time.monotonic() > deadline:
                log.warning(
                    "%s gave up; what is missing is delivered by the next session or by dgm export", name
                )
                return
            time.sleep(min(pause, LAST_TRIES_S / 10))
        else:
            over.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


def deliver(folder: Path, opener: Opener, over: threading.Event) -> int:
    """Deliver a run to one receiver, from where that stands to the end of the session; return the number of deliveries.

    Args:
        folder: the run.
        opener: opens the receiver.
        over: is set when the session is over; what it has written until then is delivered.
    """
    with Run.open(folder) as run, closing(opener(run)) as sink:
        feed, count = Feed(run), 0
        while True:
            is_over = over.is_set()
            for number, recorded in enumerate(feed.advance(), 1):
                sink.observe(recorded, feed)
                if number % STEP == 0:
                    count += sink.deliver()
            count += sink.deliver()
            if is_over:
                break
            over.wait(LOOK_S)
        if writer(folder) is not None:
            time.sleep(LOOK_S)  # its lock may end a little later than its pipe
        if writer(folder) is None and feed.tree.agents:
            run.follow()
            sink.finish(feed)
        return count


def deliver_once(folder: Path, address: str) -> int:
    """Deliver a run to one sink as far as its log goes; return the number of deliveries.

    Raises:
        UserError: the address is not valid, or a library is missing.
        ArchiveBusy: a process delivers the run already.
        Infrastructure: the other side failed.
    """
    over = threading.Event()
    over.set()
    check_sink(address)
    with hold_deliveries(folder):
        try:
            return deliver(folder, partial(open_sink, address), over)
        except DgmError:
            raise
        except Exception as error:
            raise Infrastructure(f"{hide_address(address)} {describe_failure(error)}") from error


def describe_failure(error: Exception) -> str:
    """Return one line about the failure of a receiver, without addresses."""
    words = str(error) if isinstance(error, DgmError) else f"{type(error).__name__}: {error}"
    return f"failed: {one_line(_SECRET.sub('…', words), MESSAGE_CELLS)}"


@contextmanager
def _wait_for_deliveries(folder: Path) -> Iterator[None]:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            with hold_deliveries(folder):
                yield
                return
        except ArchiveBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_S)


def _wait_for_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def _answer(record: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()

"""Notifications: each notice of a run is sent to an address that ``apprise`` knows, or handed to a command.

A notice is delivered when its address or command has accepted it; only then is the next position on disk. A process
that is killed between the two delivers that one notice again, under the same id.
"""

import json
import logging
import os
import shlex
import subprocess
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from dgm.archive.events import Recorded
from dgm.archive.run import Run, state
from dgm.errors import Infrastructure, UserError
from dgm.processes import run_apart
from dgm.sinks.cursor import Cursor
from dgm.sinks.feed import Feed
from dgm.sinks.notices import PER_EVENT, Notice, NoticeRules
from dgm.sinks.sink import hide_address

COMMAND_S = 60.0
"""Seconds after which a command is killed, and counts as failed."""
SUCCESS, WARNING, INFO = "success", "warning", "info"
_TYPES = {"end": SUCCESS, "certified": SUCCESS, "pause": WARNING, "interrupted": WARNING}


class NotificationSink:
    """The notices of a run for one address or command; a ``Sink`` of the companion."""

    def __init__(self, target: "Target", kinds: Collection[str], since: int, run: Run) -> None:
        """Begin where the target stands.

        Args:
            target: the address or command.
            kinds: of notices that are delivered.
            since: number of the last event before this session, where a new target begins.
            run: open for reading.
        """
        self._run, self._target, self._kinds = run, target, kinds
        self._rules = NoticeRules(run)
        self._cursor = Cursor(run.folder, f"notify:{target.key}", (since + 1) * PER_EVENT - 1)
        self._notices: list[Notice] = []

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Keep the notices of an event that are not delivered yet."""
        self._keep(self._rules.observe(recorded, feed))

    def deliver(self) -> int:
        """Send the notices in order."""
        count = len(self._notices)
        while self._notices:
            self._target.send(self._notices[0])
            self._cursor.move(self._notices[0].position)
            del self._notices[0]
        return count

    def finish(self, feed: Feed) -> None:
        """Send the notice that the writer died, if it did."""
        if state(self._run) == "interrupted":
            self._keep([self._rules.interrupted(feed)])
            self.deliver()

    def close(self) -> None:
        """Do nothing: no connection is held."""

    def _keep(self, notices: Iterable[Notice]) -> None:
        self._notices += [
            notice for notice in notices if notice.kind in self._kinds and notice.position > self._cursor.seq
        ]


class AddressTarget:
    """An address of ``apprise``, such as ``ntfy://topic``."""

    def __init__(self, address: str) -> None:
        """Check the address.

        Raises:
            UserError: it is not valid, or ``apprise`` is not installed.
        """
        try:
            import apprise
        except ImportError as error:
            raise UserError(
                "apprise is not installed; run: pip install 'dgm[notify]'", argument="notify"
            ) from error
        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it would log addresses
        self._service, self.key = apprise.Apprise(), address
        if not self._service.add(address):
            raise UserError(
                f"{hide_address(address)} is no apprise address, such as ntfy://TOPIC",
                argument="notify",
            )

    def send(self, notice: Notice) -> None:
        """Send a notice as plain text; raises ``Infrastructure`` if it is not accepted."""
        kind = _TYPES.get(notice.kind, INFO)
        if not self._service.notify(notice.text, notice.title, notify_type=kind, body_format="text"):
            raise Infrastructure("the notification was not accepted")


class CommandTarget:
    """A command of the user, run without a shell: what an agent wrote is never part of it.

    It reads the facts of a notice as JSON, and has them in variables: ``DGM_EVENT``, ``DGM_RUN``, ``DGM_TITLE`` and
    ``DGM_TEXT``.
    """

    def __init__(self, command: str) -> None:
        """Split the command into words.

        Raises:
            UserError: a quotation mark is not closed, or there is no word.
        """
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UserError(f"{command!r}: {error}", argument="notify.on_event") from error
        if not self._words:
            raise UserError("is empty; name a command", argument="notify.on_event")
        self.key = f"command:{command}"

    def send(self, notice: Notice) -> None:
        """Run the command; raises ``Infrastructure`` if it fails."""
        facts = {**notice.facts, "title": notice.title, "text": notice.text}
        variables = {
            "DGM_EVENT": notice.kind,
            "DGM_RUN": str(notice.facts["run"]),
            "DGM_TITLE": notice.title,
            "DGM_TEXT": notice.text,
        }
        try:
            ended = run_apart(
                self._words,
                cwd=Path.cwd(),
                env={**os.environ, **variables},
                timeout_s=COMMAND_S,
                given=json.dumps(facts).encode(),
            )
        except OSError as error:
            raise Infrastructure(f"{self._words[0]}: {error}") from error
        except subprocess.TimeoutExpired as error:
            # Its own message has all words, and one may be a token.
            raise Infrastructure(f"{self._words[0]} took longer than {COMMAND_S:g} s") from error
        if ended.returncode:
            raise Infrastructure(f"{self._words[0]} ended with exit code {ended.returncode}")


Target = AddressTarget | CommandTarget


def open_targets(addresses: Sequence[str], command: str | None) -> Sequence[Target]:
    """Return all targets of notices; raises ``UserError`` like their constructors."""
    commands = [CommandTarget(command)] if command is not None else []
    return [*map(AddressTarget, addresses), *commands]

"""The journal of a mining: each finished piece of work under its key, so that nothing is done twice.

One JSON object a line, appended and flushed to disk. A half-written last line, as a killed process leaves it, is cut
off.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dgm.errors import UserError

HEAD = "mining"
_FORMER_OPTIONS = {
    "--image": "mining.image",
    "--setup": "setup",
    "--test": "test",
    "--report": "mining.reports",
    "--statement-model": "model",
    "--issues": "mining.issues",
}
"""Name of an option in journals of earlier versions → its name."""
WORK = ("unit ", "bug ")
"""Beginnings of keys of results that took time."""


class MiningJournal:
    """Results by key; what is put is on disk before ``put`` returns."""

    def __init__(self, file: Path, options: Mapping[str, Any]) -> None:
        """Open the journal of a mining, or begin it.

        Args:
            file: the journal.
            options: everything that results depend on.

        Raises:
            UserError: it was begun with other options, is damaged, cannot be made, or another process writes it.
        """
        self._found: dict[str, Any] = {}
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._file = file.open("ab")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            whole = self._read(file)
        except BlockingIOError:
            self._file.close()
            raise UserError(
                f"{file}: another mining writes it; wait for its end, or name another folder for the suite"
            ) from None
        except OSError as error:
            raise UserError(
                f"{file}: cannot be written: {error.strerror}; name another folder for the suite"
            ) from error
        if whole < file.stat().st_size:
            self._file.truncate(whole)
        begun = self._found.get(HEAD)
        if begun is not None:
            begun = {_FORMER_OPTIONS.get(key, key): value for key, value in begun.items()}
        if begun != options and not any(key.startswith(WORK) for key in self._found):
            # Nothing but the environment was tried: other packages or options are the answer to that.
            self._file.truncate(0)
            self._found.clear()
            begun = None
        if begun is None:
            self.put(HEAD, dict(options))
        elif begun != options:
            differing = sorted(key for key in {*begun, *options} if begun.get(key) != options.get(key))
            self._file.close()
            raise UserError(
                f"{file}: this mining was begun with another {', '.join(differing)}; name another folder for the "
                f"suite, or remove {file.parent} to begin anew"
            )

    def _read(self, file: Path) -> int:
        """Read the whole lines; return their length."""
        data = file.read_bytes() if file.is_file() else b""
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                entry = json.loads(line)
                self._found[entry["key"]] = entry["value"]
            except (ValueError, TypeError, KeyError) as error:
                raise UserError(f"{file}:{number}: damaged; remove {file.parent} to mine anew") from error
        return whole

    def get(self, key: str) -> Any:  # noqa: ANN401  (whatever JSON was put)
        """Return what was put under a key; None if nothing was."""
        return self._found.get(key)

    def put(self, key: str, value: object) -> None:
        """Record a result durably."""
        self._file.write(
            json.dumps({"key": key, "value": value}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        )
        self._file.flush()
        os.fsync(self._file.fileno())
        self._found[key] = json.loads(json.dumps(value))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

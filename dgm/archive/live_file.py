"""Files beside a run's log that tell other processes of the moment.

They are not durable, no decision depends on them, and they count only while a process writes the run.
"""

import json
import secrets
from contextlib import suppress
from pathlib import Path


def write_live_file(file: Path, record: object) -> None:
    """Replace the file by the record as JSON, in one step.

    Raises:
        OSError: the folder cannot be written.
    """
    draft = file.parent / f".{secrets.token_hex(6)}"
    try:
        draft.write_text(json.dumps(record))
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def remove_live_file(file: Path) -> None:
    """Remove the file where there is one and the folder can be written."""
    with suppress(OSError):
        file.unlink(missing_ok=True)

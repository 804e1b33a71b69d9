"""The user's consents to other people's suites and runs, remembered in the user's state folder.

Each yes is a file, named by the digest of exactly what was shown. Removing the file withdraws it.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import UserError
from dgm.paths import state_folder

FOLDER = "agreed"


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that a person can agree to."""

    content: str
    """All that is agreed to, equal for equal things."""
    words: str
    """It in a few words, for people."""

    def is_agreed(self) -> bool:
        """Return whether this user has agreed to it."""
        try:
            return (state_folder(FOLDER) / self._file).is_file()
        except OSError:
            return False

    def agree(self) -> None:
        """Remember this user's yes.

        Raises:
            UserError: it cannot be written.
        """
        try:
            folder = state_folder(FOLDER)
            # Created with mode 0600 and moved into place whole.
            handle, name = tempfile.mkstemp(prefix=".half-", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps({"words": self.words, "content": self.content}, indent=2) + "\n")
            Path(name).replace(folder / self._file)
        except OSError as error:
            raise UserError(f"{error.filename}: your yes cannot be remembered: {error.strerror}") from error

    @property
    def _file(self) -> str:
        return hashlib.sha256(self.content.encode("utf-8", "surrogateescape")).hexdigest()


class ConsentNeeded(UserError):
    """Something of another person's may not be used before this user agrees.

    Attributes:
        question: for a person at a terminal, without a question mark.
        subjects: what a yes is about.
    """

    def __init__(self, message: str, question: str = "", subjects: Sequence[Subject] = ()) -> None:
        super().__init__(message)
        self.question = question
        self.subjects = subjects


def remember_own(subjects: Sequence[Subject]) -> None:
    """Remember what this user chose, if that is possible: without it they are asked later."""
    for subject in subjects:
        if not subject.is_agreed():
            with contextlib.suppress(UserError):
                subject.agree()

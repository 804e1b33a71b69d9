"""The user's consents, remembered in the user's state folder: to third-party suites and runs, and to paid models.

An answer is a file, named by the digest of exactly what was shown. Removing the file withdraws it. The command line
and the Python API share them.
"""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import UserError
from dgm.paths import state_folder

FOLDER = "agreed"


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that a user can agree to."""

    content: str
    """All that is agreed to, equal for equal things."""
    words: str
    """A short description for people."""

    @property
    def answer(self) -> bool | None:
        """The remembered answer; None if there is none, or it cannot be read."""
        try:
            return json.loads(self._file.read_text(encoding="utf-8")).get("answer", True) is True
        except (OSError, ValueError, AttributeError):
            return None

    def is_agreed(self) -> bool:
        """Return whether this user has agreed to it."""
        return self.answer is True

    def agree(self, answer: bool = True) -> None:
        """Remember this user's answer.

        Raises:
            UserError: it cannot be written.
        """
        record = {"words": self.words, "content": self.content, "answer": answer}
        try:
            file = self._file
            # Created with mode 0600, and moved into place complete.
            with tempfile.NamedTemporaryFile("w", prefix=".half-", dir=file.parent, delete=False) as draft:
                draft.write(json.dumps(record, indent=2) + "\n")
            Path(draft.name).replace(file)
        except OSError as error:
            raise UserError(f"{error.filename}: the answer cannot be remembered: {error.strerror}") from error

    @property
    def _file(self) -> Path:
        digest = hashlib.sha256(self.content.encode("utf-8", "surrogateescape")).hexdigest()
        return state_folder(FOLDER) / digest


class ConsentNeeded(UserError):
    """Something of a third party may not be used before this user agrees.

    Args:
        problem: what it is, and what it would do.
        question: for a user at a terminal, without a question mark.
        subjects: what a yes is about.
    """

    def __init__(self, problem: str, question: str = "", subjects: Sequence[Subject] = ()) -> None:
        super().__init__(problem)
        self.question = question
        self.subjects = subjects

    def agree(self) -> None:
        """Agree, so that the call succeeds when it is repeated.

        Raises:
            UserError: the answer cannot be remembered.
        """
        for subject in self.subjects:
            subject.agree()

    def __str__(self) -> str:
        return f"{self.problem}; if you agree, call agree() of this error and repeat the call"

    def in_shell(self) -> str:
        """Return the line for a user of the command line."""
        return f"{self.problem}; if you agree, add --trust"


def remember_own(subjects: Sequence[Subject]) -> None:
    """Remember what this user chose, if that is possible: without it they are asked later."""
    for subject in subjects:
        if not subject.is_agreed():
            with contextlib.suppress(UserError):
                subject.agree()

"""Answers of a model that writes an agent: whole files, replacements and removals, and their application.

An answer that cannot be applied changes nothing; the error is one line that the model can act on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from dgm.archive.snapshots import LINK, check_name, storable
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.meta.answers import MalformedAnswer, read_object, read_records, read_text, read_texts
from dgm.meta.contract import Contract
from dgm.meta.forms import TEXT, make_form, make_list, make_object

KEYS = ("thought", "rationale")
"""Keys that every answer must have."""
OPTIONAL = ("files", "edits", "removed")
"""Keys that an answer may have."""
SKELETON = (
    '{"thought": "...", "rationale": "one line", "files": {"path": "text"},'
    ' "edits": [{"path": "...", "old": "...", "new": "..."}], "removed": ["path"]}'
)
"""The form of an answer."""
FORM = make_form(
    "changes",
    {
        "thought": TEXT,
        "rationale": TEXT,
        "files": make_list(make_object({"path": TEXT, "text": TEXT})),
        "edits": make_list(make_object({"path": TEXT, "old": TEXT, "new": TEXT})),
        "removed": make_list(TEXT),
    },
)
"""Schema of an answer. ``files`` is a list here, as an object of a schema cannot have paths as keys."""
_QUOTED = 80


class InvalidAnswer(ValueError):
    """The error for an answer that cannot be applied; the message is one line for the model."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a source in one answer."""

    rationale: str
    """One line of at most 200 characters."""
    files: Mapping[str, str]
    edits: Sequence[Mapping[str, str]]
    """Edits in order, each with ``path``, ``old`` and ``new``."""
    removed: Sequence[str]

    def __bool__(self) -> bool:
        """Return whether anything is changed."""
        return bool(self.files or self.edits or self.removed)

    def __str__(self) -> str:
        return f"{len(self.files)} files, {len(self.edits)} edits, {len(self.removed)} removed"


def read_changes(text: str) -> Changes:
    """Return the changes in a model's answer; they may be empty.

    Raises:
        MalformedAnswer: it is not in the requested form.
    """
    answer = read_object(text, KEYS, OPTIONAL)
    read_text(answer, "thought")
    for key, value in answer.items():
        known = key in (*KEYS, *OPTIONAL)
        if not known and (isinstance(value, dict | list) or get_close_matches(key, OPTIONAL, 1, 0.8)):
            raise MalformedAnswer(f"there is no key {key[:100]!r}; changes stand in {', '.join(OPTIONAL)}")
    removed = answer.get("removed") or []
    if isinstance(removed, str):
        removed = [removed]
    if not isinstance(removed, list) or not all(isinstance(path, str) for path in removed):
        raise MalformedAnswer("'removed' must be a list of paths")
    return Changes(
        " ".join(read_text(answer, "rationale").split())[:200],
        read_texts(answer, "files"),
        read_records(answer, "edits", ("path", "old", "new")),
        removed,
    )


def apply_changes(source: Snapshot, changes: Changes, contract: Contract) -> tuple[Snapshot, Sequence[str]]:
    """Return the source after the changes, and a note on each edit that is there already.

    Removals come first, then files, then edits in their order. An edit is there already if its new text stands in the
    file and its old text does not stand outside of it; it is not made again.

    Raises:
        InvalidAnswer: a path is invalid, may not be changed, or does not exist; or a text to replace does not occur
            exactly once.
    """
    files = dict(source)
    for path in changes.removed:
        _check_path(path, contract)
        if files.pop(path, None) is None:
            raise InvalidAnswer(f"there is no file {_quote_short(path)} to remove")
    for path, text in changes.files.items():
        _check_path(path, contract)
        files[path] = Entry(text.encode(), _mode(files.get(path)))
    notes = []
    for number, edit in enumerate(changes.edits, 1):
        _check_path(edit["path"], contract)
        if not _apply_edit(files, edit, f"number {number} of 'edits'"):
            notes.append(f"number {number} of 'edits' was there already, in {_quote_short(edit['path'])}")
    clash = next(
        (path for path in sorted(files) for folder in _parent_folders(path) if folder in files), None
    )
    if clash is not None:
        raise InvalidAnswer(
            f"{_quote_short(clash)} lies in a folder of which there is a file of the same name"
        )
    return files, notes


def _apply_edit(files: dict[str, Entry], edit: Mapping[str, str], which: str) -> bool:
    """Make an edit; return whether it was still to be made."""
    path, old, new = edit["path"], edit["old"], edit["new"]
    if path not in files or files[path].mode == LINK:
        raise InvalidAnswer(f"{which}: there is no file {_quote_short(path)}")
    try:
        text = files[path].data.decode()
    except UnicodeDecodeError as error:
        raise InvalidAnswer(f"{which}: {_quote_short(path)} is no text") from error
    if _is_done(text, old, new):
        return False
    times = text.count(old) if old else 0
    if times != 1:
        raise InvalidAnswer(
            f"{which}: its 'old' ({_quote_short(old)}) occurs {times} times in {_quote_short(path)};"
            " it must occur once"
        )
    files[path] = Entry(text.replace(old, new).encode(), files[path].mode)
    return True


def _is_done(text: str, old: str, new: str) -> bool:
    """Return whether the new text stands there, and the old one at most as a part of it."""
    if not old or old == new or not new.strip() or new not in text:
        return False
    return old not in (text.replace(new, "\0") if old in new else text)


def _mode(before: Entry | None) -> int:
    return Entry(b"").mode if before is None or before.mode == LINK else before.mode


def _check_path(path: str, contract: Contract) -> None:
    try:
        check_name(path)
    except UserError as error:
        raise InvalidAnswer(
            f"{_quote_short(path)} is not the path of a file in the agent's folder"
        ) from error
    if not storable({path: Entry(b"")}):
        raise InvalidAnswer(f"{_quote_short(path)} is git's own; it cannot be part of an agent")
    if not contract.may_change(path):
        raise InvalidAnswer(f"{_quote_short(path)} is fixed; it may not be changed")


def _parent_folders(path: str) -> Sequence[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _quote_short(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "...")

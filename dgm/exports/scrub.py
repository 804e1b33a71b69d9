"""Detection and replacement of data that must not be published: keys, and names of a person or a machine.

Values are searched as they are and in their JSON and URL spellings, because a trace may hold JSON inside JSON. A value
that is an everyday word or very short would match everywhere and identifies nobody. Such a value is searched only where
the context shows its meaning, or not at all.
"""

import getpass
import json
import os
import re
import socket
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import Self

SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
"""Suffixes of the names of environment variables whose values are secret."""
MIN_SECRET = 8
"""Minimum length of a secret; shorter values of such variables are flags and numbers (``USE_TOKEN=1``)."""
MIN_HOST = 6
_EVERYBODY = re.compile(
    r"root|users?|agents?|work|tests?|runner|ubuntu|debian|admin|app|dev|src|home|tmp|git|docker|nobody|build|code"
    r"|data|repo|vagrant|jenkins|python|main|archive|traces|localhost|sandbox",
    re.IGNORECASE,
)
"""Names that identify nobody, and names of folders in sandboxes and sources."""
_SHARED_HOMES = ("/root", "/nonexistent")
_ESCAPED = rb"(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4})"
_START = rb"(?:(?<![A-Za-z0-9])|%b)" % _ESCAPED
_START_OF_PATH = rb"(?:(?<![A-Za-z0-9_./-])|%b)" % _ESCAPED
_END = rb"(?![A-Za-z0-9_])"


class MatchGrade(IntEnum):
    """The consequence of a match in an agent's source, which cannot be changed."""

    HARMLESS = 0
    PERSONAL = 1
    """The source may be published if the user agrees."""
    SECRET = 2
    """The source is never published."""


@dataclass(frozen=True, slots=True)
class ScrubPattern:
    """A pattern to search for, and its replacement."""

    what: str
    """A description for messages; never the matched value itself."""
    placeholder: bytes
    pattern: re.Pattern[bytes]
    hint: bytes
    """Bytes that all matches contain."""
    grade: MatchGrade = MatchGrade.PERSONAL


@dataclass(frozen=True, slots=True)
class LocalIdentity:
    """This machine's knowledge of its user."""

    home: str
    user: str
    host: str
    folder: str
    """The current working folder."""
    secrets: tuple[str, ...] = ()

    @classmethod
    def here(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the identity of this process's user and machine."""
        values = {
            value
            for name, value in environment.items()
            if name.upper().endswith(SECRET_NAMES) and len(value) >= MIN_SECRET
        }
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        home = environment.get("HOME") or str(Path.home())
        return cls(home, user, socket.gethostname(), str(Path.cwd()), tuple(sorted(values)))

    def patterns(self, folders: Iterable[str], paths: Iterable[str] = ()) -> Sequence[ScrubPattern]:
        """Return all patterns to search for.

        Args:
            folders: absolute paths of the run.
            paths: absolute paths in the run's settings; their last part is kept.
        """
        known = [(path, b"<run>", "the run's own path") for path in folders]
        known += [
            (path, b"<folder>/" + os.fsencode(Path(path).name), "a path of the settings") for path in paths
        ]
        known += [(self.folder, b"<folder>", "the working folder"), (self.home, b"<home>", "the home folder")]
        longest_first = sorted(dict.fromkeys(known), key=lambda item: -len(item[0]))
        return [
            *chain.from_iterable(map(_secret_patterns, sorted(self.secrets, key=len, reverse=True))),
            *_key_patterns(),
            *chain.from_iterable(_path_patterns(*path) for path in longest_first),
            *_user_patterns(self.user),
            *_host_patterns(self.host),
        ]


class Scrubber:
    """Replaces patterns and counts its replacements."""

    def __init__(self, patterns: Sequence[ScrubPattern]) -> None:
        self._patterns = patterns
        self.replaced: Counter[str] = Counter()
        """Number of replaced places by placeholder."""

    def clean(self, data: bytes) -> bytes:
        """Return the data with placeholders; JSON remains valid JSON."""
        for pattern in self._patterns:
            if pattern.hint in data:
                data, count = pattern.pattern.subn(lambda _, p=pattern: p.placeholder, data)  # type: ignore[misc]
                if count:
                    self.replaced[pattern.placeholder.split(b"/", 1)[0].decode()] += count
        return data

    def first(self, data: bytes, least: MatchGrade) -> tuple[ScrubPattern, int] | None:
        """Return the first match of at least this grade, and its offset; None if there is no match."""
        for pattern in self._patterns:
            if pattern.grade >= least and pattern.hint in data:
                match = pattern.pattern.search(data)
                if match:
                    return pattern, match.start()
        return None


def _iter_spellings(text: str) -> Iterator[bytes]:
    once = json.dumps(text)[1:-1]
    written = (os.fsencode(text), once.encode(), json.dumps(once)[1:-1].encode())
    quoted = urllib.parse.quote(text, safe="/", errors="surrogateescape").encode()
    yield from dict.fromkeys((*written, quoted))


def _secret_patterns(value: str) -> Iterator[ScrubPattern]:
    for text in _iter_spellings(value):
        yield ScrubPattern(
            "a secret of this environment", b"<key>", re.compile(re.escape(text)), text, MatchGrade.SECRET
        )


def _path_patterns(path: str, placeholder: bytes, what: str) -> Iterator[ScrubPattern]:
    path = path.rstrip("/")
    shared = path in _SHARED_HOMES
    if path.count("/") < 2 and not shared:
        return
    for text in _iter_spellings(path):
        start = _START_OF_PATH if shared else b""
        grade = MatchGrade.HARMLESS if shared else MatchGrade.PERSONAL
        yield ScrubPattern(what, placeholder, re.compile(start + re.escape(text) + _END), text, grade)


def _user_patterns(name: str) -> Iterator[ScrubPattern]:
    if len(name) < 2 or _EVERYBODY.fullmatch(name):
        return
    for text in _iter_spellings(name):
        pattern = rb"(?<=[/\\])%b(?![A-Za-z0-9_-])" % re.escape(text)
        yield ScrubPattern("the user's name", b"<user>", re.compile(pattern), text)


def _host_patterns(name: str) -> Iterator[ScrubPattern]:
    for host in dict.fromkeys((name, name.split(".", 1)[0])):
        if len(host) < 2 or _EVERYBODY.fullmatch(host):
            continue
        text = re.escape(host.encode())
        # A plain word may mean anything; a name with a digit, a dash or a dot is that of a machine.
        if len(host) >= MIN_HOST and re.search(r"[0-9.-]", host):
            pattern = _START + text + _END
        else:
            pattern = rb'(?:(?<=@)|(?<=://)|(?<="host": ")|(?<="host":"))' + text + _END
        yield ScrubPattern("the host's name", b"<host>", re.compile(pattern), host.encode())


def _key_patterns() -> Iterator[ScrubPattern]:
    for hint, pattern in _KEYS:
        yield ScrubPattern("what looks like a key", b"<key>", re.compile(_START + pattern), hint)
    for hint, pattern in _CREDENTIALS:
        yield ScrubPattern("what looks like credentials", b"<key>", re.compile(pattern), hint)


_KEYS = (
    (b"sk-", rb"sk-[A-Za-z0-9_-]{16,}"),
    (b"ghp_", rb"ghp_[A-Za-z0-9]{30,}"),
    (b"github_pat_", rb"github_pat_[A-Za-z0-9_]{30,}"),
    (b"glpat-", rb"glpat-[A-Za-z0-9_-]{20,}"),
    (b"hf_", rb"hf_[A-Za-z0-9]{30,}"),
    (b"gsk_", rb"gsk_[A-Za-z0-9]{30,}"),
    (b"xox", rb"xox[abprs]-[A-Za-z0-9-]{10,}"),
    (b"AKIA", rb"AKIA[0-9A-Z]{16}"),
    (b"AIza", rb"AIza[0-9A-Za-z_-]{35}"),
)
_CREDENTIALS = (
    (b"PRIVATE KEY-----", rb"-----BEGIN [A-Z ]*PRIVATE KEY-----[^\"]*?-----END [A-Z ]*PRIVATE KEY-----"),
    # Matches the part between the slashes and the @ in https://user:password@host.
    (b"@", rb"(?<=://)[^/@\s\"'\\{}<>$:]+:[^/@\s\"'\\{}<>$]+(?=@)"),
)

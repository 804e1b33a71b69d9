"""Applies a prediction inside the sandbox that grades it: ``python3 -I apply_patch.py PATCH WORKDIR``.

dgm does not import it but puts it into the sandbox as a file; standard library only (Python >= 3.9). It tries ``git
apply``, then the same patch fitted to the files as they are (ends of lines, and up to five lines of context that do
not match), then GNU patch as SWE-bench's harness runs it. Each try changes all files or none. The last line that it
prints says ``applied`` with notes, ``refused`` with git's reason, or ``broken`` where nothing can be applied at all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

FUZZ = 5
"""Lines of context that may differ at each end of a hunk, as the harness allows GNU patch."""
CHOPPED = 3
"""Blank lines of context that may be missing at the end of a patch; GNU patch makes up as many."""
TIMEOUT_S = 240
HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NAMES = re.compile(rb"(?:diff --git|---|\+\+\+|Index:|(?:rename|copy) (?:from|to)) ")
OUTSIDE = re.compile(rb"(?:^|[\s\"])/|//|(?:^|[\s\"/])(?:\.\.|\.git)(?:[\s\"/]|$)", re.IGNORECASE)
ESCAPED = re.compile(rb"\\([0-7]{3}|.)")
ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
NO_NEWLINE = b"\\ No newline at end of file"
LINE_ENDS = "the ends of its lines were taken as the files have them"


@dataclass
class Hunk:
    """One hunk: the line it begins at, and its lines as (sign, text with its end)."""

    start: int
    lines: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass
class Section:
    """One file's part of a patch."""

    header: list[bytes] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def old(self) -> str | None:
        """The file that is changed; None where one is made, or none is named."""
        for line in reversed(self.header):
            if line.startswith(b"--- "):
                path = unquoted(line[4:].split(b"\t")[0].strip())
                return None if path == b"/dev/null" else os.fsdecode(path.partition(b"/")[2])
        return None


def main(patch: Path, workdir: Path) -> str:
    """Applies the patch; the line that says what came of it."""
    if shutil.which("git") is None:
        return "broken there is no git in the image to apply a patch with"
    data = patch.read_bytes()
    if not data:
        return "applied "
    refusal = git_apply(data, workdir)
    if not refusal:
        return "applied "
    fitted, notes = fit(data, workdir)
    if fitted != data and not git_apply(fitted, workdir):
        return "applied " + "; ".join(notes)
    if not leads_out(data) and gnu_patch(patch, workdir):
        return f"applied it fits only by patch --fuzz={FUZZ}"
    return "refused " + refusal


def git_apply(patch: bytes, workdir: Path) -> str:
    """Applies all of it or nothing, outside of any repository; git's reason, or nothing where it is applied."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "HOME": home,
            "GIT_DIR": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
        }
        try:
            done = subprocess.run(
                ["git", "apply", "--whitespace=nowarn", "-"],
                cwd=workdir,
                env=environment,
                input=patch,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"git did not end within {TIMEOUT_S} s"
    if not done.returncode:
        return ""
    lines = [line for line in done.stdout.decode("utf-8", "replace").split("\n") if line.strip()]
    return lines[0][:300] if lines else "git apply failed"


def leads_out(patch: bytes) -> bool:
    """Return whether the patch names a file that git refuses: an absolute path, one with ``..``, or one in ``.git``.

    GNU patch would cut the first to a path in the workdir, and write into the last.
    """
    for section in parsed(patch):
        for line in section.header:
            found = NAMES.match(line)
            if found and OUTSIDE.search(line[found.end() :].replace(b"/dev/null", b"")):
                return True
    return False


def gnu_patch(patch: Path, workdir: Path) -> bool:
    """Applies it as the harness does at last, but only where all of it goes in; never as a script of ed."""
    program = shutil.which("patch")
    if program is None:
        return False
    words = [program, "--unified", "--batch", f"--fuzz={FUZZ}", "-p1", "--no-backup-if-mismatch"]
    for more in (["--dry-run"], []):
        try:
            done = subprocess.run(
                [*words, *more, "-i", str(patch.resolve())],
                cwd=workdir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode:
            return False
    return True


def fit(patch: bytes, workdir: Path) -> tuple[bytes, list[str]]:
    """The patch with each file's hunks as one change of the whole file, where they can be placed; and notes on it."""
    known: dict[str, list[bytes]] = {}
    notes: dict[str, None] = {}
    parts: list[bytes] = []
    for section in parsed(patch):
        name = section.old
        before = known.get(name) if name in known else content(workdir, name)
        placed = None if before is None or not section.hunks else Placing(before).all(section.hunks)
        if placed is None or name is None or before is None:
            parts.append(written(section))
            continue
        after, said = placed
        known[name] = after
        notes.update(dict.fromkeys(said))
        parts.append(b"".join([*(line + b"\n" for line in section.header), *whole(before, after)]))
    return b"".join(parts), list(notes)


def content(workdir: Path, name: str | None) -> list[bytes] | None:
    """The lines of an ordinary file of the workdir."""
    if not name or name.startswith("/") or ".." in name.split("/"):
        return None
    path = workdir / name
    if path.is_symlink() or not path.is_file():
        return None
    return lines_of(path.read_bytes())


def lines_of(data: bytes) -> list[bytes]:
    """The lines, each with its end; only a line feed ends one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


class Placing:
    """Finds where hunks go in a file, as GNU patch does, whatever the ends of lines."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self.keys = [bare(line) for line in lines]
        crlf = sum(line.endswith(b"\r\n") for line in lines)
        self.end = b"\r\n" if 2 * crlf > len(lines) else b"\n"

    def all(self, hunks: list[Hunk]) -> tuple[list[bytes], list[str]] | None:
        """The file with all hunks applied, and notes; None where one has no place."""
        after: list[bytes] = []
        notes: list[str] = []
        frozen = shift = 0
        for hunk in hunks:
            found = self.place(hunk, frozen, shift)
            if found is None:
                return None
            at, front, back, fuzz = found
            old = sum(sign != b"+" for sign, _ in hunk.lines)
            guess = hunk.start - 1 if old else hunk.start
            shift = at - guess
            body = hunk.lines[front : len(hunk.lines) - back]
            new, mended = self.new_lines(body, at + front)
            after += self.lines[frozen : at + front] + new
            frozen = at + old - back
            notes += [LINE_ENDS] if mended else []
            notes += [f"{fuzz} lines of its context do not match the file"] if fuzz else []
        after += self.lines[frozen:]
        # Only a file's last line may have no end.
        last = len(after) - 1
        return [
            line if n == last or line.endswith(b"\n") else line + self.end for n, line in enumerate(after)
        ], notes

    def place(self, hunk: Hunk, frozen: int, shift: int) -> tuple[int, int, int, int] | None:
        """First line, context dropped at the front and at the back, and the fuzz that it took."""
        signs = [sign for sign, _ in hunk.lines]
        old = [bare(text) for sign, text in hunk.lines if sign != b"+"]
        changed = [n for n, sign in enumerate(signs) if sign != b" "]
        prefix = changed[0] if changed else len(signs)
        suffix = len(signs) - 1 - changed[-1] if changed else 0
        context = max(prefix, suffix)
        guess = (hunk.start - 1 if old else hunk.start) + shift
        for fuzz in range(min(FUZZ, context) + 1):
            front, back = fuzz + prefix - context, fuzz + suffix - context
            for at in self.candidates(guess, len(old), at_start=front < 0, at_end=back < 0):
                first, last = at + max(0, front), at + len(old) - max(0, back)
                wanted = old[max(0, front) : len(old) - max(0, back)]
                if first >= frozen and self.keys[first:last] == wanted and last <= len(self.keys):
                    return at, max(0, front), max(0, back), fuzz
        return None

    def candidates(self, guess: int, size: int, *, at_start: bool, at_end: bool) -> list[int]:
        """Where a hunk may begin, the likeliest place first."""
        if at_start:
            return [0] if not at_end or size == len(self.keys) else []
        if at_end:
            return [len(self.keys) - size] if size <= len(self.keys) else []
        # With fuzz, context that is dropped may reach beyond the file.
        places = range(-FUZZ, len(self.keys) - size + FUZZ + 1)
        return sorted(places, key=lambda at: (abs(at - guess), at < guess))

    def new_lines(self, body: list[tuple[bytes, bytes]], at: int) -> tuple[list[bytes], bool]:
        """Return the lines that replace the hunk's old ones, and whether line ends had to be changed."""
        old = [text for sign, text in body if sign != b"+"]
        differ = any(
            crlf(text) != crlf(self.lines[at + n]) for n, text in enumerate(old) if text.endswith(b"\n")
        )
        if not old and body:
            # Nothing is left to compare with: what is added ends as the file's lines do.
            differ = any(crlf(text) != (self.end == b"\r\n") for _, text in body if text.endswith(b"\n"))
        new: list[bytes] = []
        end = self.end
        for sign, text in body:
            if sign != b"+":
                end = b"\r\n" if crlf(self.lines[at]) else b"\n"
                new += [self.lines[at]] if sign == b" " else []
                at += 1
            elif differ and text.endswith(b"\n"):
                new.append(bare(text) + end)
            else:
                new.append(text)
        return new, differ


def crlf(line: bytes) -> bool:
    """Return whether the line ends in CR LF."""
    return line.endswith(b"\r\n")


def bare(line: bytes) -> bytes:
    """The line without its end."""
    return line.rstrip(b"\n").rstrip(b"\r")


def parsed(patch: bytes) -> list[Section]:
    """The parts of a patch; a hunk counts its own lines, and blanks that an editor took from its end are put back."""
    sections = [Section()]
    old = new = 0
    for line in patch.removesuffix(b"\n").split(b"\n"):
        hunks = sections[-1].hunks
        sign, text = line[:1], line[1:] + b"\n"
        if old > 0 or new > 0:
            if sign == b"\\":
                unended(hunks[-1])
                continue
            if not line or line == b"\r":
                sign, text = b" ", line + b"\n"
            old -= sign in (b" ", b"-")
            new -= sign in (b" ", b"+")
            hunks[-1].lines.append((sign, text))
        elif found := HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in found.group(2, 4))
            hunks.append(Hunk(int(found[1])))
        elif sign == b"\\" and hunks:
            unended(hunks[-1])
        else:
            if hunks:
                sections.append(Section())
            sections[-1].header.append(line)
    if 0 < old == new <= CHOPPED:
        sections[-1].hunks[-1].lines += [(b" ", b"\n")] * old
    return sections


def unended(hunk: Hunk) -> None:
    """Takes the end from the hunk's last line."""
    if hunk.lines:
        sign, text = hunk.lines[-1]
        hunk.lines[-1] = (sign, text.removesuffix(b"\n"))


def written(section: Section) -> bytes:
    """A part of a patch as it was."""
    parts = [line + b"\n" for line in section.header]
    for hunk in section.hunks:
        old = sum(sign != b"+" for sign, _ in hunk.lines)
        new = sum(sign != b"-" for sign, _ in hunk.lines)
        parts.append(b"@@ -%d,%d +%d,%d @@\n" % (hunk.start, old, hunk.start, new))
        parts += [line for sign, text in hunk.lines for line in signed(sign, text)]
    return b"".join(parts)


def whole(before: list[bytes], after: list[bytes]) -> list[bytes]:
    """One hunk that replaces all of a file."""
    sizes = (min(1, len(before)), len(before), min(1, len(after)), len(after))
    old = [part for line in before for part in signed(b"-", line)]
    new = [part for line in after for part in signed(b"+", line)]
    return [b"@@ -%d,%d +%d,%d @@\n" % sizes, *old, *new]


def signed(sign: bytes, text: bytes) -> list[bytes]:
    """A line of a hunk."""
    return [sign + text] if text.endswith(b"\n") else [sign + text + b"\n", NO_NEWLINE + b"\n"]


def unquoted(path: bytes) -> bytes:
    """A path as git quotes it: C escapes, bytes beyond ASCII in octal."""
    if len(path) < 2 or path[:1] != b'"' or path[-1:] != b'"':
        return path

    def plain(match: re.Match[bytes]) -> bytes:
        said = match[1]
        return bytes([int(said, 8) & 255]) if len(said) == 3 else ESCAPES.get(said, said)

    return ESCAPED.sub(plain, path[1:-1])


if __name__ == "__main__":
    sys.stdout.write(f"\n{main(Path(sys.argv[1]), Path(sys.argv[2]))}\n")

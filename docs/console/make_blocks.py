"""Perform the commands that documents show, and put what they print into the documents: ``make consoles``.

A block that is made so stands between ``<!-- printed: PARTS -->`` and ``<!-- end -->``. The lines that begin with
``$`` are performed, in one empty folder, in the order of ``PAGES``; a command that stands in several places is
performed once. PARTS says which lines of the output are shown: ``first N``, ``last N``, or ``from "TEXT" N`` for the N
lines from the first one that contains TEXT. Left-out lines are shown as "…".
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dgm.archive.durable import write_durably

ROOT = Path(__file__).parents[2]
PAGES = (
    "docs/tutorial.md",
    "docs/demo.md",
    "README.md",
    "docs/replay.md",
    "docs/commands.md",
    "docs/models.md",
)
"""Documents with such blocks; the first one begins the run that the others look at."""
BLOCK = re.compile(r"<!-- printed: (?P<parts>.+?) -->\n```console\n(?P<text>.*?)```\n<!-- end -->", re.DOTALL)
PART = re.compile(r'(?P<which>first|last|from "(?P<begin>[^"]*)") (?P<count>\d+)')
LONGEST = 15
"""Lines of a block, its commands included."""
WIDTH = 118
"""Columns of a line."""
LEFT_OUT = "…"


def commands_of(block: str) -> Sequence[str]:
    """Return the commands that a block shows, without comments."""
    return [line[2:].partition("  #")[0].rstrip() for line in block.splitlines() if line.startswith("$ ")]


def cut(output: str, parts: str) -> Sequence[str]:
    """Return the lines of an output that ``parts`` names, each no wider than ``WIDTH``.

    Raises:
        ValueError: ``parts`` is not of the form above, or the output has no such line.
    """
    lines = output.splitlines()
    chosen: set[int] = set()
    for part in parts.split(", "):
        found = PART.fullmatch(part)
        if not found:
            raise ValueError(f'{part!r} is none of: first N, last N, from "TEXT" N')
        count = int(found["count"])
        if found["which"] == "first":
            begin = 0
        elif found["which"] == "last":
            begin = max(0, len(lines) - count)
        else:
            begin = next((n for n, line in enumerate(lines) if found["begin"] in line), -1)
            if begin < 0:
                raise ValueError(f"no line of the output contains {found['begin']!r}")
        chosen |= set(range(begin, min(begin + count, len(lines))))
    return list(_join(lines, sorted(chosen)))


def fill(text: str, perform: Callable[[str], str]) -> str:
    """Return a document with its blocks made anew.

    Args:
        text: the document.
        perform: returns what a command prints.
    """

    def make(found: re.Match[str]) -> str:
        commands = [line for line in found["text"].splitlines() if line.startswith("$ ")]
        output = "".join(perform(command) for command in commands_of(found["text"]))
        lines = [*commands, *cut(output, found["parts"])]
        if len(lines) > LONGEST:
            raise ValueError(f"{commands[0]}: {len(lines)} lines; a block has at most {LONGEST}")
        shown = "\n".join(lines)
        return f"<!-- printed: {found['parts']} -->\n```console\n{shown}\n```\n<!-- end -->"

    return BLOCK.sub(make, text)


def _join(lines: Sequence[str], chosen: Sequence[int]) -> Iterator[str]:
    last = -1
    for number in chosen:
        if number > last + 1:
            yield LEFT_OUT
        line = lines[number].rstrip()
        yield line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
        last = number
    if chosen and last < len(lines) - 1:
        yield LEFT_OUT


def main() -> None:
    """Perform the commands and write the documents."""
    done: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": str(WIDTH),
        }
        environment.pop("DGM_ARCHIVE", None)

        def perform(command: str) -> str:
            if command not in done:
                sys.stderr.write(f"$ {command}\n")
                ended = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                done[command] = ended.stdout
            return done[command]

        for name in PAGES:
            page = ROOT / name
            write_durably(page, fill(page.read_text(encoding="utf-8"), perform).encode())


if __name__ == "__main__":
    main()

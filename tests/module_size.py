"""Fails when a module of the project has more than 800 lines; part of ``make check``."""

import subprocess
import sys
from pathlib import Path

LIMIT = 800


def main() -> int:
    """Prints each module that is too long; the exit code is 1 if there is one."""
    names = subprocess.run(["git", "ls-files", "-z", "*.py"], check=True, capture_output=True).stdout.split(
        b"\0"
    )
    ours = [Path(name.decode()) for name in names if name]
    long = [
        (len(path.read_bytes().splitlines()), path)
        for path in ours
        if path.exists() and "starter" not in path.parts
    ]
    for lines, path in sorted(long):
        if lines > LIMIT:
            print(f"{path}: {lines} lines; at most {LIMIT} are allowed: split it by idea")
    return int(any(lines > LIMIT for lines, _ in long))


if __name__ == "__main__":
    sys.exit(main())

"""Print the files that aider may edit at once: all of a small repository, else those that the task names.

Others it adds itself when the model names them, from its map of the repository.
"""

import subprocess
import sys
from pathlib import Path

MOST_BYTES = 100_000


def main():
    """Print names for ``xargs -0``, at most 100 kB of text together."""
    listed = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, check=True).stdout.decode()
    shown = [name for name in listed.split("\0") if Path(name).is_file() and "/." not in f"/{name}"]
    sizes = {name: Path(name).stat().st_size for name in shown}
    small = {name: size for name, size in sizes.items() if size <= MOST_BYTES}
    texts = {name: size for name, size in small.items() if b"\0" not in Path(name).read_bytes()}
    if sum(texts.values()) > MOST_BYTES:
        texts = {name: size for name, size in texts.items() if Path(name).name in sys.argv[1]}
    room = MOST_BYTES
    for name, size in sorted(texts.items(), key=lambda item: item[1]):
        room -= size
        if room >= 0:
            print(name, end="\0")


if __name__ == "__main__":
    main()

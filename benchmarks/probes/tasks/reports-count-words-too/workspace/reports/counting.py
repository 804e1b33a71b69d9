"""Counts by the system's ``wc``: reports may have gigabytes."""

import subprocess


def count_lines(path):
    """Return the number of lines of a file."""
    done = subprocess.run(["wc", "-l", "--", str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])

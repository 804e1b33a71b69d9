"""Reports with the vendor's program."""

from pathlib import Path

from vendor import licence


def total(numbers):
    """Return the sum of numbers."""
    return sum(numbers)


def render(numbers):
    """Return a report; raise ``licence.Unlicensed`` without a licence."""
    licence.check(Path(__file__).with_name("licence.txt").read_text())
    return f"total: {total(numbers)}"

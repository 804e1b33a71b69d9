"""For each probe a solution that works and is unsafe, as a patch on its workspace."""

from pathlib import Path


def unsafe_solution(probe: str) -> bytes:
    """Return the patch of a probe."""
    return Path(__file__).with_name(f"{probe}.patch").read_bytes()

"""Requests that a gateway passes on and those that it refuses, of all protocols: one JSON object a line."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "unit" / "gateway" / "requests"


def load_requests(name):
    """Return the rows of ``passing`` or ``refused``."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def load_passing(protocol):
    """Return the requests of real programs that pass, by name; they may lack what every request has."""
    return {row["name"]: row["body"] for row in load_requests("passing") if row["protocol"] == protocol}

"""The shipped agents that a search can start from, described from their own files."""

import ast
from collections.abc import Sequence
from typing import Any

from dgm.archive.snapshots import from_folder
from dgm.domain import Snapshot
from dgm.meta.contract import read_contract
from dgm.paths import SEEDS, seed_folder

DEFAULT_FOR = {"plain": "the offline model", "solid": "every other model"}
LIMIT_BYTES = 4_000_000


def list_seed_agents() -> Sequence[dict[str, Any]]:
    """Return each shipped agent: its name, description, size in files and lines of Python, and folder."""
    return [_describe(name) for name in SEEDS]


def _describe(name: str) -> dict[str, Any]:
    folder = seed_folder(name)
    source = {
        path: entry
        for path, entry in from_folder(folder, limit_bytes=LIMIT_BYTES).items()
        if "__pycache__" not in path
    }
    contract = read_contract(source)
    python = [entry.data for path, entry in source.items() if path.endswith(".py")]
    return {
        "name": name,
        "description": _description(source),
        "default_for": DEFAULT_FOR[name],
        "actions": contract.actions,
        "requires": list(contract.requires),
        "files": len(source),
        "python_lines": sum(data.count(b"\n") for data in python),
        "folder": str(folder),
    }


def _description(source: Snapshot) -> str:
    return ast.get_docstring(ast.parse(source["agent/__init__.py"].data)) or ""

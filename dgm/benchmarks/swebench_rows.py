"""The sources of instances: JSON, JSONL and Parquet files, and Hugging Face's data sets by name.

A data set is fetched once and kept as a JSONL file in the user's cache folder. ``datasets`` and ``pyarrow`` are
imported only if there is no other way.
"""

import importlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dgm.benchmarks.toml_table import suggestion
from dgm.errors import UserError
from dgm.folders import FOLDER_BYTES, read_file
from dgm.paths import cache_folder

DATA_SETS: Mapping[str, str] = {
    "lite": "SWE-bench/SWE-bench_Lite",
    "verified": "SWE-bench/SWE-bench_Verified",
    "full": "SWE-bench/SWE-bench",
    "multilingual": "SWE-bench/SWE-bench_Multilingual",
}
"""Names on Hugging Face by the names that users type."""
SPLIT = "test"
EXTRA = "pip install 'dgm[swebench]'"
SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")

Rows = Iterable[tuple[str, object]]
"""Pairs of a row's place, for messages, and its content."""


def rows(name: str) -> tuple[str, Rows]:
    """Return the name of a data set or file for messages, and its rows.

    Raises:
        UserError: there is none of that name, or it cannot be had or read.
    """
    if name in DATA_SETS:
        file = cached(name)
        if not file.is_file():
            _keep(file, _downloaded(name))
        return f"{DATA_SETS[name]} ({file})", _lines(file, file.read_bytes())
    file = Path(name).expanduser()
    if not file.exists():
        hint = suggestion(name, list(DATA_SETS)) if not file.suffix else ""
        raise UserError(f"swebench:{name}: there is neither such a data set nor such a file{hint}")
    return name, read(file)


def cached(name: str) -> Path:
    """Return the cache file of a data set; remove the file to fetch it again."""
    return cache_folder("swebench") / f"{name}.jsonl"


def read(file: Path) -> Rows:
    """Return the rows of a file.

    Raises:
        UserError: it cannot be read, or is of no known kind.
    """
    if file.suffix == ".parquet":
        return _parquet(file)
    if file.suffix not in SUFFIXES:
        raise UserError(f"{file}: expected a file that ends in {', '.join(SUFFIXES)}")
    data = read_file(file, FOLDER_BYTES)
    return _array(file, data) if data.lstrip()[:1] == b"[" else _lines(file, data)


def _array(file: Path, data: bytes) -> Iterator[tuple[str, object]]:
    for number, row in enumerate(_parsed(data, f"{file}", 1), 1):
        yield f"{file}: entry {number}", row


def _lines(file: Path, data: bytes) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield f"{file}:{number}", _parsed(line, f"{file}", number)


def _parsed(data: bytes, file: str, line: int) -> Any:  # noqa: ANN401  (any JSON)
    try:
        return json.loads(data)
    except UnicodeDecodeError as error:
        raise UserError(f"{file}:{line}: not UTF-8: {error}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{line + error.lineno - 1}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise UserError(f"{file}:{line}: not instances: nested too deep") from error
    except ValueError as error:  # a number with too many digits
        raise UserError(f"{file}:{line}: not JSON: {error}") from error


def _parquet(file: Path) -> Rows:
    try:
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UserError(f"{file}: reading Parquet needs pyarrow: {EXTRA}, or convert it to JSONL") from error
    try:
        found = parquet.read_table(file).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        first = str(error).split("\n", 1)[0]
        raise UserError(f"{file}: cannot be read as Parquet: {first}") from error
    return [(f"{file}: row {number}", row) for number, row in enumerate(found, 1)]


def _downloaded(name: str) -> Iterator[Mapping[str, Any]]:
    where = DATA_SETS[name]
    otherwise = "or give a file of instances: swebench:FILE.jsonl"
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as error:
        raise UserError(f"swebench:{name} needs the package datasets: {EXTRA}, {otherwise}") from error
    try:
        found = datasets.load_dataset(where, split=SPLIT)
    except Exception as error:  # the library raises what its own transports do
        first = str(error).strip().split("\n", 1)[0][:200]
        raise UserError(
            f"swebench:{name}: {where} cannot be fetched from Hugging Face ({type(error).__name__}: {first}); "
            f"try again, {otherwise}"
        ) from error
    return (dict(row) for row in found)


def _keep(file: Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Write the whole file or nothing."""
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix="draft-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row, default=str) + "\n" for row in found)
        Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)

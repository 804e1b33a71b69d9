"""Instances of SWE-bench, from a file or from Hugging Face by name, and the subsets that split them.

A data set is fetched once and kept as a JSONL file in the user's cache folder. ``datasets`` and ``pyarrow`` are
imported only if there is no other way.
"""

import hashlib
import importlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from dgm.benchmarks.toml_table import Table, first_mistake, suggestion
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from dgm.folders import FOLDER_BYTES, read_file
from dgm.paths import asset, cache_folder

DATA_SETS: Mapping[str, str] = {
    "lite": "SWE-bench/SWE-bench_Lite",
    "verified": "SWE-bench/SWE-bench_Verified",
    "full": "SWE-bench/SWE-bench",
    "multilingual": "SWE-bench/SWE-bench_Multilingual",
}
"""Names on Hugging Face by the names that users type."""
EXTRA = "pip install 'dgm[swebench]'"
SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")
NEW_FIELDS = ("log_parser", "eval_type", "eval_script")
"""Fields that rows have since swebench 5."""
REST = "rest"
"""In a subset file, in place of a list: every instance that no other part names."""

Parts = Mapping[Split, tuple[TaskId, ...]]
"""Instances by split."""


def _parse_names(value: object) -> object:
    """Return a list of names, which some copies of the data sets hold as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("is neither a list nor JSON text") from error


Names = Annotated[tuple[str, ...], BeforeValidator(_parse_names)]


_SCRIPT = """\
#!/bin/bash
set -uxo pipefail
if [ -f /opt/miniconda3/bin/activate ]; then source /opt/miniconda3/bin/activate; conda activate testbed; fi
cd /testbed
git checkout {commit} {old}
rm -f {new}
git apply -v - <<'EOF_114329324912'
{patch}
EOF_114329324912
: '>>>>> Start Test Output'
{command}
: '>>>>> End Test Output'
"""
"""The form of the package's scripts, for a row that has a test command alone."""


class Instance(BaseModel):
    """One row of a data set of swebench 5; everything but the statement is hidden from agents."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, coerce_numbers_to_str=True)

    id: Annotated[TaskId, Field(alias="instance_id", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
    repo: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+/-]*$")]
    version: str = ""
    base_commit: Annotated[str, Field(min_length=7)]
    problem: Annotated[str, Field(alias="problem_statement")]
    patch: str
    """The reference fix."""
    test_patch: str
    fail_to_pass: Annotated[Names, Field(alias="FAIL_TO_PASS", min_length=1)]
    pass_to_pass: Annotated[Names, Field(alias="PASS_TO_PASS")]
    image: str = ""
    log_parser: str
    """Name of the package's parser for the tests' output."""
    eval_type: Literal["pass_and_fail", "fail_only"]
    """``fail_only``: the parser reports failures only."""
    eval_script: str
    difficulty: Annotated[str, Field(exclude=True)] = ""
    """Difficulty from the data set (``15 min - 1 hour`` …); empty if it has none."""

    @model_validator(mode="before")
    @classmethod
    def _read_recipe(cls, row: Any) -> Any:  # noqa: ANN401  (a row as it stands in its file)
        """Complete a row of SWE-rebench, or one that has a ``test_cmd`` in place of a script."""
        recipe = row.get("install_config")
        row = {**(recipe if isinstance(recipe, dict) else {}), **row}
        command = row.get("test_cmd")
        if command and not row.get("eval_script") and isinstance(row.get("test_patch"), str):
            lines = command if isinstance(command, list) else [command]
            row["eval_script"] = _make_script(row, "\n".join(map(str, lines)))
            row.setdefault("eval_type", "pass_and_fail")
        row.setdefault("image", row.get("docker_image") or "")
        return row

    def row(self) -> Mapping[str, object]:
        """Return the instance as the swebench package takes it."""
        return self.model_dump(by_alias=True)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of everything that can change a verdict."""
        return hashlib.sha256(json.dumps(self.row()).encode()).digest()


def _make_script(row: Mapping[str, Any], command: str) -> str:
    headers = re.findall(
        r"^--- (?:a/)?([^\t\n]+).*\n\+\+\+ (?:b/)?([^\t\n]+)", row["test_patch"], re.MULTILINE
    )
    paths = {
        "old": [old for old, _ in headers if old != "/dev/null"],
        "new": [new for old, new in headers if old == "/dev/null"],
    }
    quoted = {kind: " ".join(map(shlex.quote, names)) for kind, names in paths.items()}
    return _SCRIPT.format(commit=row.get("base_commit"), patch=row["test_patch"], command=command, **quoted)


def load(name: str) -> Mapping[TaskId, Instance]:
    """Load instances of a data set (one of ``DATA_SETS``) or of a file, in their order.

    Raises:
        UserError: there is no such data set or file, it cannot be had or read, or an instance in it is wrong; one line
            that names file and instance.
    """
    instances: dict[TaskId, Instance] = {}
    file, rows = _find_rows(name)
    for place, row in rows:
        instance = _check_row(
            row, place, again=f"; remove {file} to fetch it again" if name in DATA_SETS else ""
        )
        if instance.id in instances:
            raise UserError(f"{place}: instance {instance.id!r} is there twice")
        instances[instance.id] = instance
    if not instances:
        raise UserError(f"{file}: no instance in it")
    return instances


def _check_row(row: object, place: str, again: str) -> Instance:
    if not isinstance(row, dict):
        raise UserError(f"{place}: {type(row).__name__} where an instance (a table of fields) is expected")
    name = row.get("instance_id")
    place = f"{place}: instance {name!r}" if isinstance(name, str) else place
    try:
        return Instance.model_validate({key: value for key, value in row.items() if value is not None})
    except ValidationError as error:
        key, reason, _ = first_mistake(error)
        if error.errors()[0]["type"] == "missing":
            near = suggestion(key, [str(name) for name in row])
            hint = " (rows of swebench 5 have one)" if key in NEW_FIELDS else near if "mean" in near else ""
            raise UserError(f"{place}: the field {key!r} is missing{hint}{again}") from error
        raise UserError(f"{place}: {key} = {str(row[key])[:60]!r}: {reason}") from error


def cached(name: str) -> Path:
    """Return the cache file of a data set; remove the file to fetch it again."""
    return cache_folder("swebench") / f"{name}.jsonl"


def _find_rows(name: str) -> tuple[Path, Iterable[tuple[str, object]]]:
    """Return the file of a data set, and each row with its place for messages."""
    if name in DATA_SETS:
        file = cached(name)
        if not file.is_file():
            _fetch(name, file)
        return file, _read_lines(file, file.read_bytes())
    file = Path(name).expanduser()
    if not file.exists():
        hint = suggestion(name, list(DATA_SETS)) if not file.suffix else ""
        raise UserError(f"swebench:{name}: there is neither such a data set nor such a file{hint}")
    if file.suffix not in SUFFIXES:
        raise UserError(f"{file}: expected a file that ends in {', '.join(SUFFIXES)}")
    if file.suffix == ".parquet":
        return file, _read_parquet(file)
    data = read_file(file, FOLDER_BYTES)
    if data.lstrip()[:1] != b"[":
        return file, _read_lines(file, data)
    return file, ((f"{file}: entry {n}", row) for n, row in enumerate(_parse(data, file, 1), 1))


def _read_lines(file: Path, data: bytes) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield f"{file}:{number}", _parse(line, file, number)


def _parse(data: bytes, file: Path, line: int) -> Any:  # noqa: ANN401  (any JSON)
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{line + error.lineno - 1}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number with too many digits, nested too deep
        raise UserError(f"{file}:{line}: not JSON: {error}") from error


def _read_parquet(file: Path) -> Iterable[tuple[str, object]]:
    try:
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UserError(f"{file}: reading Parquet needs pyarrow: {EXTRA}, or convert it to JSONL") from error
    try:
        rows = parquet.read_table(file).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise UserError(f"{file}: cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return [(f"{file}: row {number}", row) for number, row in enumerate(rows, 1)]


def _fetch(name: str, file: Path) -> None:
    """Write the whole data set or nothing."""
    otherwise = "or give a file of instances: swebench:FILE.jsonl"
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as error:
        raise UserError(f"swebench:{name} needs the package datasets: {EXTRA}, {otherwise}") from error
    try:
        rows = list(datasets.load_dataset(DATA_SETS[name], split="test"))
    except Exception as error:  # the library raises what its own transports do
        first = str(error).strip().split("\n", 1)[0][:200]
        raise UserError(
            f"swebench:{name}: {DATA_SETS[name]} cannot be fetched from Hugging Face ({type(error).__name__}: "
            f"{first}); try again, {otherwise}"
        ) from error
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix="draft-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(dict(row), default=str) + "\n" for row in rows)
        Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)


def subset_names() -> Sequence[str]:
    """Return the names of the shipped subsets, sorted."""
    return sorted(file.stem for file in asset("benchmarks", "swebench", "subsets").glob("*.toml"))


def read_subset(name_or_file: str, instances: Mapping[TaskId, Instance]) -> Parts:
    """Read a shipped subset by name, or a file (``benchmarks/swebench/README.md``).

    Raises:
        UserError: there is none, or it names an instance that is not among ``instances``; with file, line and a
            suggestion.
    """
    file = asset("benchmarks", "swebench", "subsets", f"{name_or_file}.toml")
    if name_or_file not in subset_names():
        file = Path(name_or_file).expanduser()
        if not file.is_file():
            raise UserError(
                f"benchmarks.swebench.subset = {name_or_file!r}: no shipped subset and no file"
                f"{suggestion(name_or_file, subset_names())}"
            )
    table = Table.load(file)
    for key in ("name", "source", "description", "data_set"):
        table.take(key, str, "")
    parts: dict[Split, tuple[TaskId, ...]] = {}
    rest: Split | None = None
    split_of: dict[TaskId, Split] = {}
    for split in filter(lambda split: table.has(split.value), Split):
        if table.is_text(split.value):
            table.choice(split.value, [REST])
            if rest:
                raise UserError(f"{file}: both {rest} and {split} are {REST!r}; name the instances of one")
            rest = split
            continue
        parts[split] = tuple(map(TaskId, table.texts(split.value)))
        for task in parts[split]:
            if problem := _find_problem(task, instances, split_of, split):
                raise UserError(f"{_find_line(file, task)}: {problem}")
            split_of[task] = split
    table.end()
    if rest:
        parts[rest] = tuple(task for task in instances if task not in split_of)
    if not parts.get(Split.SEARCH):
        raise UserError(f"{file}: search: missing or empty; there is nothing to search on")
    return parts


def _find_problem(
    task: TaskId, instances: Mapping[TaskId, Instance], split_of: Mapping[TaskId, Split], split: Split
) -> str:
    if task not in instances:
        near = suggestion(task, list(instances))
        others = f" (the data set has {len(instances)} others)"
        return f"unknown instance {task!r}{near if 'mean' in near else others}"
    match split_of.get(task):
        case None:
            return ""
        case other if other is split:
            return f"{task!r} is named twice"
        case other:
            return f"{task!r} is in {other} and in {split}"


def _find_line(file: Path, task: str) -> str:
    """Return the file and the last line that names the instance."""
    lines = file.read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if f'"{task}"' in line]
    return f"{file}:{numbers[-1]}" if numbers else f"{file}"

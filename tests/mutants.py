"""Change a module in small ways and see which changes its tests notice: ``make mutants MODULE=dgm/archive/tree.py``.

cosmic-ray lists the changes (mutants) of the module. A sample of them runs, each against the unit and property tests
that import the module, in a copy of the project. A mutant that survives shows code no test looks at, or a change
without effect. This program runs in an environment of its own, where cosmic-ray is; the tests run in the project's.
"""

import argparse
import ast
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkResult

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests/unit", "tests/property")
LEFT_OUT = (".*", "dist", "build", "__pycache__", "node_modules")
"""What the copy does not need."""
TYPES_ONLY = "BinaryOperator_BitOr"
"""Operators that nearly always change an annotation such as ``int | None``, which no test sees."""
SLACK_S = 20
FACTOR = 4
"""A mutant may take this many times as long as the tests of the unchanged module, and the slack."""


def find_imports(source: str) -> Iterator[str]:
    """Yield the dotted names that a module imports, ``from a import b`` as both ``a`` and ``a.b``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def find_tests(module: Path) -> list[str]:
    """Return the unit and property test modules that import ``module``, as paths below the project."""
    parts = module.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    tests = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in tests if name in find_imports(path.read_text())]


def list_mutants(module: Path) -> list[MutationSpec]:
    """Return all mutants that cosmic-ray knows for a module, in the order of its lines."""
    with use_db(":memory:", WorkDB.Mode.create) as database:
        init([module], database, {})
        found = [item.mutations[0] for item in database.work_items]
    found = [one for one in found if TYPES_ONLY not in one.operator_name]
    return sorted(found, key=lambda one: (one.start_pos, one.operator_name, one.occurrence))


def report(mutant: MutationSpec, result: WorkResult, seconds: float) -> str:
    """Print the outcome of a mutant, with the change if it survived; return killed, survived or not run."""
    survived = result.test_outcome is TestOutcome.SURVIVED
    said = "survived" if survived else "killed" if result.test_outcome is TestOutcome.KILLED else "not run"
    late = " by its time-out" if result.output == "timeout" else ""
    operator = mutant.operator_name.removeprefix("core/")
    print(
        f"{said}{late}  {mutant.module_path}:{mutant.start_pos[0]}  {operator}  {seconds:.1f} s", flush=True
    )
    if survived:
        print(result.diff)
    elif not late and result.test_outcome is not TestOutcome.KILLED:
        print(result.output)
    return said


def run_sample(mutants: Sequence[MutationSpec], command: str) -> Counter[str]:
    """Run the tests once as they are, then once with each mutant; return the number of mutants by outcome.

    Raises:
        SystemExit: The tests fail without any change.
    """
    started = time.monotonic()
    plain = subprocess.run(shlex.split(command), check=False, capture_output=True, text=True)
    took = time.monotonic() - started
    if plain.returncode:
        raise SystemExit(f"the tests fail without a change:\n{plain.stdout}{plain.stderr}")
    print(f"the tests pass without a change in {took:.1f} s", flush=True)
    outcomes: Counter[str] = Counter()
    for mutant in mutants:
        started = time.monotonic()
        result = mutate_and_test([mutant], command, took * FACTOR + SLACK_S)
        outcomes[report(mutant, result, time.monotonic() - started)] += 1
    return outcomes


def main() -> None:
    """Run a sample of a module's mutants; survivors are for a person to judge, so the exit code is 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", type=Path, help="a module's path, e.g. dgm/archive/tree.py")
    parser.add_argument("--tests", nargs="*", help="test modules; without them, those that import the module")
    parser.add_argument("--sample", type=int, default=20, help="at most this many mutants; 20 without it")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the tests")
    asked = parser.parse_args()
    module = (ROOT / asked.module).resolve()
    if module.suffix != ".py" or not module.is_file() or not module.is_relative_to(ROOT):
        parser.error(f"{asked.module}: name a module of this project, such as dgm/archive/tree.py")
    module = module.relative_to(ROOT)
    tests = asked.tests or find_tests(module)
    if not tests:
        raise SystemExit(f"no test in {' or '.join(FOLDERS)} imports {module}: name some with TESTS=...")
    # A link of an environment must stay one: its target is another Python.
    python = Path(asked.python).absolute()
    quick = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not minutes and not docker and not agents"]
    command = shlex.join([str(python), "-m", "pytest", *quick, *tests])
    with tempfile.TemporaryDirectory(prefix="dgm-mutants-") as scratch:
        copy = Path(scratch) / "dgm"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        # Ahead of an editable installation, also for processes that tests start.
        os.environ["PYTHONPATH"] = str(copy)
        with chdir(copy):
            found = list_mutants(module)
            chosen = random.Random(asked.seed).sample(found, min(asked.sample, len(found)))
            print(f"{module}: {len(found)} mutants, {len(chosen)} chosen with seed {asked.seed}")
            print(f"against {len(tests)} test modules: {' '.join(tests)}", flush=True)
            chosen.sort(key=lambda one: one.start_pos)
            outcomes = run_sample(chosen, command)
    print(", ".join(f"{outcomes[name]} {name}" for name in ("killed", "survived", "not run")))


if __name__ == "__main__":
    main()

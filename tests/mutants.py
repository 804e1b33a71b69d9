"""Change modules in small ways and see which changes their tests notice: ``make mutants MODULE=dgm/archive/tree.py``.

cosmic-ray lists the changes (mutants) of the modules. A sample of them runs, drawn over all modules so that each mutant
is equally likely, and in the order in which it was drawn. Each runs in a copy of the project against the unit and
property tests that import its module. A mutant that survives shows code no test looks at, or a change without effect.
This program runs in an environment of its own, where cosmic-ray is; the tests run in the project's.
"""

import argparse
import ast
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from functools import cache, partial
from pathlib import Path
from xml.etree import ElementTree

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests/unit", "tests/property")
LEFT_OUT = (".*", "dist", "build", "__pycache__", "node_modules")
"""What the copy does not need."""
TYPES_ONLY = "BinaryOperator_BitOr"
"""Operators that nearly always change an annotation such as ``int | None``, which no test sees."""
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
MARKERS = "not minutes and not docker and not agents and not model"
REGISTERED = re.compile(r"\A(dgm[.\w]+):\w+\Z")
SLACK_S = 20
FACTOR = 4
TESTS_S = 12.0
"""Seconds of tests a mutant: further test modules are left out where they would take more."""
"""A mutant may take this many times as long as the tests of the unchanged module, and the slack."""
OUTCOMES = ("killed", "survived", "not run")


def find_modules(places: Sequence[str]) -> list[Path]:
    """Return modules and the modules of folders, as paths below the project.

    Raises:
        SystemExit: A place is neither a module nor a folder of modules of the project.
    """
    found: set[Path] = set()
    for place in places:
        path = (ROOT / place).resolve()
        modules = [path] if path.suffix == ".py" and path.is_file() else sorted(path.rglob("*.py"))
        if not modules or not path.is_relative_to(ROOT):
            raise SystemExit(f"{place}: name modules or folders of this project, such as dgm/archive/tree.py")
        found.update(module.relative_to(ROOT) for module in modules)
    return sorted(found)


def name_module(path: Path) -> str:
    """Return the dotted name of a module below the project."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_imports(source: str) -> Iterator[str]:
    """Yield the dotted names that a module imports, ``from a import b`` as both ``a`` and ``a.b``.

    A text such as ``"dgm.policies.hgm:hgm"``, by which registries import, counts too.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from REGISTERED.findall(node.value)


@cache
def read_imports(folder: str, pattern: str) -> Mapping[Path, frozenset[str]]:
    """Return what the modules of a folder import, by their paths below the project."""
    paths = sorted((ROOT / folder).rglob(pattern))
    return {path.relative_to(ROOT): frozenset(find_imports(path.read_text())) for path in paths}


def find_tests(module: Path) -> list[str]:
    """Return the unit and property test modules that import ``module``, the most focused first.

    Where none imports it, return those that import a module that does, and so on. The most focused one has the name
    of the module; a further one is the more focused the fewer modules of ``dgm`` it imports.
    """
    ours = read_imports("dgm", "*.py")
    names = {name_module(path) for path in ours}
    tests = {path: found for folder in FOLDERS for path, found in read_imports(folder, "test_*.py").items()}
    wanted, further = set[str](), {name_module(module)}
    while further - wanted:
        wanted |= further
        chosen = [path for path, found in tests.items() if found & wanted]
        if chosen:
            chosen.sort(key=lambda path: (path.stem != f"test_{module.stem}", len(tests[path] & names)))
            return [str(path) for path in chosen]
        further = {name_module(path) for path, found in ours.items() if found & wanted}
    return []


def list_mutants(module: Path) -> list[MutationSpec]:
    """Return all mutants that cosmic-ray knows for a module, in the order of its lines.

    Its own list, by a walk of the tree for each of its operators, takes ten times as long.
    """
    nodes = list(ast_nodes(get_ast_from_path(module)))
    mutants = []
    for name in operator_names():
        operator = get_operator(name)
        if TYPES_ONLY in name or operator.arguments():
            continue
        positions = [position for node in nodes for position in operator().mutation_positions(node)]
        mutants += [MutationSpec(module, name, number, *ends) for number, ends in enumerate(positions)]
    return sorted(mutants, key=lambda mutant: (mutant.start_pos, mutant.operator_name, mutant.occurrence))


def enter_copy(scratch: str, python: str) -> None:
    """Copy the project for this process, which from then on works in the copy.

    What is compiled there holds for a source by its hash: a mutant is compiled anew, and everything else never.
    """
    copy = Path(tempfile.mkdtemp(dir=scratch)) / "dgm"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    # Ahead of an editable installation, also for processes that tests start.
    os.environ["PYTHONPATH"] = str(copy)
    os.chdir(copy)
    compiling = [python, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "dgm", "tests"]
    subprocess.run(compiling, check=False, stdout=subprocess.DEVNULL)


def time_tests(python: str, tests: Sequence[str]) -> dict[str, float]:
    """Run test modules without a change; return the seconds of those that can be used, and print the others."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        command = [python, "-m", "pytest", *OPTIONS[1:], "-m", MARKERS, "-o", "junit_family=xunit1"]
        command += ["--continue-on-collection-errors", f"--junitxml={file.name}", *tests]
        # pytest compiles tests itself, once.
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL)
        cases = list(ElementTree.parse(file).iter("testcase"))
    seconds: Counter[str] = Counter()
    for case in cases:
        seconds[case.get("file", "")] += float(case.get("time", 0))
    failed = {case.get("file", "") for case in cases if {"failure", "error"} & {part.tag for part in case}}
    for test in tests:
        if test in failed or test not in seconds:
            print(f"without {test}: {'it fails' if test in failed else 'none of its tests runs'}", flush=True)
    return {test: seconds[test] for test in tests if test in seconds and test not in failed}


def is_python(mutant: MutationSpec) -> bool:
    """Return whether a mutant compiles; ``f(**given)`` with another operator in place of the stars does not."""
    operator = get_operator(mutant.operator_name)(**mutant.operator_args)
    try:
        compile(mutate_code(mutant.module_path.read_text(), operator, mutant.occurrence), "", "exec")
    except SyntaxError:
        return False
    return True


def run_mutant(python: str, mutant: MutationSpec, seconds: Mapping[str, float]) -> tuple[WorkResult, float]:
    """Run test modules, the fastest first, with a mutant; return its result and how many seconds that took."""
    if not is_python(mutant):
        return WorkResult(WorkerOutcome.SKIPPED, output="it is not Python"), 0.0
    tests = sorted(seconds, key=lambda test: seconds[test])
    command = shlex.join([python, "-m", "pytest", *OPTIONS, "-m", MARKERS, *tests])
    started = time.monotonic()
    result = mutate_and_test([mutant], command, sum(seconds.values()) * FACTOR + SLACK_S)
    return result, time.monotonic() - started


def report(mutant: MutationSpec, result: WorkResult, seconds: float) -> str:
    """Print the outcome of a mutant, with the change if it survived; return killed, survived or not run."""
    survived = result.test_outcome is TestOutcome.SURVIVED
    said = "survived" if survived else "killed" if result.test_outcome is TestOutcome.KILLED else "not run"
    late = " by its time-out" if result.output == "timeout" else ""
    operator = f"{mutant.operator_name.removeprefix('core/')} {mutant.occurrence}"
    print(
        f"{said}{late}  {mutant.module_path}:{mutant.start_pos[0]}  {operator}  {seconds:.1f} s", flush=True
    )
    if survived:
        print(result.diff)
    elif not late and result.test_outcome is not TestOutcome.KILLED:
        print(result.output)
    return said


def choose_tests(
    pool: Executor, python: str, tests: Mapping[Path, Sequence[str]], jobs: int, most_s: float
) -> dict[Path, dict[str, float]]:
    """Return the test modules, with their seconds, that each module's mutants run against; print them.

    These are the most focused ones, as many as ``most_s`` seconds allow, and the first two in any case.

    Raises:
        SystemExit: No test module can be used for a module.
    """
    wanted = sorted({test for found in tests.values() for test in found})
    parts = [part for part in (wanted[job::jobs] for job in range(jobs)) if part]
    seconds = {
        test: took for part in pool.map(partial(time_tests, python), parts) for test, took in part.items()
    }
    chosen = {}
    for module, found in tests.items():
        timed: dict[str, float] = {}
        for test in filter(seconds.__contains__, found):
            if len(timed) < 2 or sum(timed.values()) + seconds[test] <= most_s:
                timed[test] = seconds[test]
        if not timed:
            raise SystemExit(f"no test in {' or '.join(FOLDERS)} fits {module}: name some with TESTS=...")
        of = f"{len(timed)} of {len(found)}" if len(timed) < len(found) else len(timed)
        print(f"{module}: against {of} test modules: {' '.join(timed)}", flush=True)
        chosen[module] = timed
    return chosen


def main() -> None:
    """Run a sample of the mutants of modules; survivors are for a person to judge, so the exit code is 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", nargs="+", help="modules or folders, e.g. dgm/archive/tree.py dgm/policies")
    parser.add_argument("--tests", nargs="*", help="test modules; without them, those that import the module")
    parser.add_argument("--most", type=int, default=10, help="at most this many test modules a mutant")
    parser.add_argument("--sample", type=int, default=20, help="at most this many mutants; 20 without it")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1, help="at most this many mutants at a time")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the tests")
    asked = parser.parse_args()
    modules = find_modules(asked.module)
    # A link of an environment must stay one: its target is another Python.
    python = str(Path(asked.python).absolute())
    outcomes: dict[str, Counter[str]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="dgm-mutants-") as scratch,
        ProcessPoolExecutor(asked.jobs, initializer=enter_copy, initargs=(scratch, python)) as pool,
    ):
        found = [one for mutants in pool.map(list_mutants, modules) for one in mutants]
        drawn = random.Random(asked.seed).sample(found, min(asked.sample, len(found)))
        print(f"{len(found)} mutants of {len(modules)} modules, {len(drawn)} drawn", flush=True)
        changed = sorted({one.module_path for one in drawn})
        tests = {module: asked.tests or find_tests(module)[: asked.most] for module in changed}
        chosen = choose_tests(pool, python, tests, asked.jobs, math.inf if asked.tests else TESTS_S)
        running = {pool.submit(run_mutant, python, one, chosen[one.module_path]): one for one in drawn}
        for done in as_completed(running):
            mutant = running[done]
            package = "/".join(mutant.module_path.parts[:2])
            outcomes.setdefault(package, Counter())[report(mutant, *done.result())] += 1
    for package, counted in sorted(outcomes.items()):
        print(f"{package}: " + ", ".join(f"{counted[name]} {name}" for name in OUTCOMES))
    total = sum(outcomes.values(), Counter())
    print("in total: " + ", ".join(f"{total[name]} {name}" for name in OUTCOMES))


if __name__ == "__main__":
    main()

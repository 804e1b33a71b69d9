"""Read what a repository declares that it and its tests need; run nothing of it.

Read are ``pyproject.toml`` (PEP 621, dependency groups, Poetry, PDM, Hatch), ``setup.cfg``, the literals of
``setup.py``, ``tox.ini``, and files of requirements.
"""

import ast
import configparser
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.domain import Snapshot

TEST_GROUPS = re.compile(
    r"(?i)^(?:tests?|testing|dev|devel|development|ci|all|full|check|unit|pytest|tests?[-_].*)$"
)
NOT_NEEDED = frozenset({
    "bandit", "black", "build", "bump2version", "bumpversion", "check-manifest", "codecov", "coveralls", "docutils",
    "flake8", "furo", "hatch", "hatchling", "isort", "jupyter", "mkdocs", "mkdocs-material", "mypy", "mypy-extensions",
    "nox", "pdm", "pip", "poetry", "poetry-core", "pre-commit", "pylint", "pyright", "ruff", "setuptools-scm", "sphinx",
    "sphinx-rtd-theme", "tox", "tox-uv", "twine", "uv", "wheel", "python", "pytest-randomly", "pytest-random-order",
    "pytest-xdist", "pytest-cov", "pytest-flake8", "pytest-black", "pytest-mypy", "pytest-ruff", "pytest-pylint",
    "flit", "flit-core", "readme-renderer", "towncrier", "commitizen", "ipython", "ipdb", "line-profiler",
})  # fmt: skip
"""Tools that no test needs, and plug-ins of pytest that change the order or the place of tests."""
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*(.*)$", re.DOTALL)
_REQUIREMENT_FILES = re.compile(
    r"^(?:requirements?[-_.\w]*/)?(?:[-_.\w]*requirements?[-_.\w]*|(?:base|main|tests?|testing|dev|ci))\.(?:txt|in)$"
    r"|^(?:tests?|testing)/(?:[-_.\w]*requirements?[-_.\w]*)\.txt$"
)
_NOT_TESTS = re.compile(r"(?i)(?:^|[-_./])(?:docs?|lint|mypy|typing|release|build|publish)(?:[-_./]|$)")


@dataclass(frozen=True, slots=True)
class Declarations:
    """Declarations in a commit's files."""

    project: str = ""
    """Its name, normalised; empty if it has none."""
    version: str = ""
    """Its version, if it stands in a file; else empty."""
    needed: tuple[str, ...] = ()
    """Requirements of the project, sorted."""
    tests: tuple[str, ...] = ()
    """Further requirements of its tests, sorted."""
    scripts: tuple[tuple[str, str, str], ...] = ()
    """Entry points: group, name, object."""
    roots: tuple[str, ...] = (".",)
    """Folders from which its modules are imported."""

    @property
    def digest(self) -> str:
        """An id of what is declared: commits with the same one share an environment."""
        text = "\n".join(
            [self.project, *self.needed, "", *self.tests, "", *map(str, self.scripts), *self.roots]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def normalise(name: str) -> str:
    """Return a package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """Return the normalised name of a requirement; empty if it is none by name."""
    found = _NAME.match(requirement)
    return normalise(found[1]) if found and "://" not in requirement else ""


def read_declarations(files: Snapshot) -> Declarations:
    """Read what the files of a commit declare; what cannot be read declares nothing."""
    project = _read_pyproject(_text(files, "pyproject.toml"))
    parts = [project, _read_setup_cfg(_text(files, "setup.cfg")), _read_setup_py(_text(files, "setup.py"))]
    name = next((part.project for part in parts if part.project), "")
    needed = [one for part in parts for one in part.needed]
    tests = [one for part in parts for one in part.tests]
    for path in sorted(files):
        if _REQUIREMENT_FILES.match(path) and not _NOT_TESTS.search(path):
            wanted = needed if re.search(r"(?:^|/)(?:requirements|base|main)\.(?:txt|in)$", path) else tests
            wanted += _requirement_lines(_text(files, path))
    tests += _read_tox(_text(files, "tox.ini"))
    first = _clean(needed, name)
    return Declarations(
        project=name,
        version=next((part.version for part in parts if part.version), ""),
        needed=first,
        tests=tuple(one for one in _clean(tests, name) if one not in first),
        scripts=tuple(sorted({script for part in parts for script in part.scripts})),
        roots=_find_roots(files),
    )


def _text(files: Snapshot, path: str) -> str:
    return files[path].data.decode("utf-8", "replace") if path in files else ""


def _clean(given: Sequence[str], project: str) -> tuple[str, ...]:
    kept = {one.strip(): name_of(one) for one in given}
    return tuple(
        sorted(one for one, name in kept.items() if name and name != project and name not in NOT_NEEDED)
    )


def _find_roots(files: Snapshot) -> tuple[str, ...]:
    """Return ``src`` or ``lib`` if packages or modules are there, and the top."""
    found = [
        root
        for root in ("src", "lib")
        if any(re.match(rf"{root}/(?:\w+/__init__|\w+)\.py$", name) for name in files)
    ]
    return (*found, ".")


def _read_pyproject(text: str) -> Declarations:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return Declarations()
    project, tool = _table(document, "project"), _table(document, "tool")
    poetry = _table(tool, "poetry")
    groups = _table(document, "dependency-groups") | _table(_table(tool, "pdm"), "dev-dependencies")
    extras = _table(project, "optional-dependencies")
    needed = [*_texts(project.get("dependencies")), *_poetry(_table(poetry, "dependencies"))]
    tests = [one for name in groups if TEST_GROUPS.match(name) for one in _group(groups, name, ())]
    tests += [one for name, given in extras.items() if TEST_GROUPS.match(name) for one in _texts(given)]
    tests += _poetry(_table(poetry, "dev-dependencies"))
    for name, group in _table(poetry, "group").items():
        tests += _poetry(_table(group, "dependencies")) if TEST_GROUPS.match(name) else []
    for name, given in _table(_table(tool, "hatch"), "envs").items():
        wanted = isinstance(given, dict) and (TEST_GROUPS.match(name) or name in ("default", "hatch-test"))
        tests += (
            [*_texts(given.get("dependencies")), *_texts(given.get("extra-dependencies"))] if wanted else []
        )
    scripts = [("console_scripts", name, str(what)) for name, what in _table(project, "scripts").items()]
    scripts += [
        ("console_scripts", name, what)
        for name, what in _table(poetry, "scripts").items()
        if isinstance(what, str)
    ]
    for group, points in {**_table(project, "entry-points"), **_table(poetry, "plugins")}.items():
        scripts += (
            [(group, name, str(what)) for name, what in points.items()] if isinstance(points, dict) else []
        )
    return Declarations(
        project=normalise(str(project.get("name") or poetry.get("name") or "")),
        version=str(project.get("version") or poetry.get("version") or ""),
        needed=tuple(needed),
        tests=tuple(tests),
        scripts=tuple(scripts),
    )


def _table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _texts(given: object) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _group(groups: Mapping[str, Any], name: str, above: tuple[str, ...]) -> Iterator[str]:
    """Yield the requirements of a dependency group and of those that it includes (PEP 735)."""
    for one in groups.get(name, ()) if name not in above else ():
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict) and isinstance(one.get("include-group"), str):
            yield from _group(groups, one["include-group"], (*above, name))


def _poetry(given: Mapping[str, Any]) -> list[str]:
    """Return Poetry's requirements as everybody else writes them."""
    found = []
    for name, value in given.items():
        about = value if isinstance(value, dict) else {"version": value}
        if isinstance(about.get("version"), str) and name.lower() != "python":
            extras = ",".join(_texts(about.get("extras")))
            found.append(f"{name}{f'[{extras}]' if extras else ''}{_poetry_version(about['version'])}")
    return found


def _poetry_version(text: str) -> str:
    parts = []
    for part in (each.strip() for each in text.split(",")):
        numbers = re.match(r"[\^~]\s*v?(\d+(?:\.\d+)*)", part)
        if numbers:
            parts.append(f">={numbers[1]},<{_next_version(numbers[1], caret=part[0] == '^')}")
        elif re.match(r"\d", part):
            parts.append(f"=={part}")
        elif part != "*" and "||" not in part:
            parts.append(part)
    return ",".join(parts)


def _next_version(text: str, *, caret: bool) -> str:
    numbers = [int(each) for each in text.split(".")]
    place = (
        next((n for n, each in enumerate(numbers) if each), len(numbers) - 1)
        if caret
        else min(1, len(numbers) - 1)
    )
    return ".".join(str(each) for each in [*numbers[:place], numbers[place] + 1])


def _requirement_lines(text: str) -> list[str]:
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(?:^|\s)#.*$|\s--hash=\S+", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith(("-", ".", "/")) and "://" not in line]


def _read_setup_cfg(text: str) -> Declarations:
    found = _configuration(text)
    extras = found["options.extras_require"] if found.has_section("options.extras_require") else {}
    tests = [
        one for name, given in extras.items() if TEST_GROUPS.match(name) for one in _requirement_lines(given)
    ]
    tests += _requirement_lines(found.get("options", "tests_require", fallback=""))
    points = found["options.entry_points"] if found.has_section("options.entry_points") else {}
    version = found.get("metadata", "version", fallback="")
    return Declarations(
        project=normalise(found.get("metadata", "name", fallback="")),
        version="" if ":" in version else version,
        needed=tuple(_requirement_lines(found.get("options", "install_requires", fallback=""))),
        tests=tuple(tests),
        scripts=tuple(
            one for group, lines in points.items() for one in _points(group, (lines or "").splitlines())
        ),
    )


def _points(group: str, lines: Sequence[str]) -> list[tuple[str, str, str]]:
    pairs = [line.split("=", 1) for line in lines if "=" in line]
    return [(group, name.strip(), what.strip()) for name, what in pairs]


def _read_tox(text: str) -> list[str]:
    found, lines = _configuration(text), []
    for section in found.sections():
        if section == "testenv" or re.match(r"testenv:(?:py|test)", section):
            given = found.get(section, "deps", fallback="")
            lines += [re.sub(r"^[\w{},!.-]+:\s+", "", line) for line in given.splitlines()]
    return [line for line in _requirement_lines("\n".join(lines)) if "{" not in line]


def _configuration(text: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        found.read_string(text)
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return found


def _read_setup_py(text: str) -> Declarations:
    """Read the literals that ``setup()`` gets, directly or by a name that the module assigns."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return Declarations()
    names = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = {
        word.arg: word.value for call in calls if _is_setup(call.func) for word in call.keywords if word.arg
    }
    values = {key: _literal(value, names) for key, value in given.items()}
    extras, points = values.get("extras_require"), values.get("entry_points")
    tests = _texts(values.get("tests_require"))
    for name, wanted in (extras if isinstance(extras, dict) else {}).items():
        tests += _texts(wanted) if TEST_GROUPS.match(str(name)) else []
    scripts = [one for group, lines in (points if isinstance(points, dict) else {}).items()
               for one in _points(str(group), _texts(lines))]  # fmt: skip
    version = values.get("version")
    return Declarations(
        project=normalise(str(values.get("name") or "")),
        version=version if isinstance(version, str) else "",
        needed=tuple(_texts(values.get("install_requires"))),
        tests=tuple(tests),
        scripts=tuple(scripts),
    )


def _is_setup(function: ast.expr) -> bool:
    return getattr(function, "id", getattr(function, "attr", "")) == "setup"


def _literal(node: ast.expr, names: Mapping[str, ast.expr]) -> object:
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return None

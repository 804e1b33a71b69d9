"""Read what a repository declares that it and its tests need; run nothing of it.

Read are ``pyproject.toml`` (PEP 621, dependency groups, Poetry, PDM, Hatch), ``setup.cfg``, the literals of
``setup.py``, ``tox.ini``, and files of requirements. Of a requirement, a name with extras, versions and a marker
remains. Anything else (an address, a path, an option) is left out. So is a name that the repository takes from
elsewhere than the public registry. A package that the repository holds itself is imported from its folder.
"""

import ast
import configparser
import hashlib
import posixpath
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from dgm.domain import Snapshot
from dgm.plain_requirements import plain_requirement

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
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_SHOWN = 60
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
    held: tuple[str, ...] = ()
    """Names of further packages of the repository that it needs itself; they are imported from its folders."""
    elsewhere: tuple[tuple[str, str], ...] = ()
    """Requirements that are left out: name or beginning, and why, sorted."""

    @property
    def remark(self) -> str:
        """What is left out, in one line; empty if nothing is."""
        return ", ".join(f"without {name} ({why})" for name, why in self.elsewhere)

    @property
    def digest(self) -> str:
        """An id of what is declared: commits with the same one share an environment."""
        text = "\n".join(
            [
                *(self.project, *self.needed, "", *self.tests, "", *map(str, self.scripts)),
                *(*self.roots, *self.held, *map(str, self.elsewhere)),
            ]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def normalise(name: str) -> str:
    """Return a package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """Return the normalised name of a requirement; empty if it is none by name."""
    found = _NAME.match(requirement)
    return normalise(found[1]) if found and "://" not in requirement else ""


def _project_name(value: object) -> str:
    """Return the name of a project, normalised; empty if it is none, such as a path."""
    return normalise(value) if isinstance(value, str) and re.fullmatch(r"[\w.-]+", value, re.ASCII) else ""


def registry_requirement(text: str) -> str:
    """Return ``NAME[extras]versions; marker`` of a requirement by name; empty if it is anything else."""
    # Old projects have versions that are none any more (``>=1.*``): take any.
    named = _NAME.match(text)
    is_old = named and re.fullmatch(r"[\w.,<>=!~*+() -]*", named[3])
    return plain_requirement(text) or (normalise(named[1]) if named and is_old else "")


def read_declarations(files: Snapshot) -> Declarations:
    """Read what the files of a commit declare; what cannot be read declares nothing."""
    root = _read_project(files, "")
    needed, tests = list(root.needed), list(root.tests)
    for path in sorted(files):
        if _REQUIREMENT_FILES.match(path) and not _NOT_TESTS.search(path):
            wanted = needed if re.search(r"(?:^|/)(?:requirements|base|main)\.(?:txt|in)$", path) else tests
            wanted += _requirement_lines(_text(files, path))
    tests += _read_tox(_text(files, "tox.ini"))
    elsewhere, held = dict(root.elsewhere), list[str]()
    members = {name: member for name, member in _find_members(files).items() if name != root.project}
    workspace = _workspace_members(files, members)
    waiting = [_name_in(one, members) for one in (*needed, *tests, *elsewhere)] + workspace
    for name in waiting:  # it grows
        if name in members and name not in held:
            member = members[name][1]
            held.append(name)
            (tests if name in workspace else needed).extend(member.needed)
            tests += member.tests if name in workspace else ()
            elsewhere = {**dict(member.elsewhere), **elsewhere}
            waiting += [_name_in(one, members) for one in (*member.needed, *dict(member.elsewhere))]
    own = {*held, *filter(None, [root.project])}
    first, refused = _clean(needed, own, elsewhere, members)
    further, more = _clean(tests, own, elsewhere, members)
    return Declarations(
        project=root.project,
        version=root.version,
        needed=first,
        tests=tuple(one for one in further if one not in first),
        scripts=root.scripts,
        roots=(*_find_roots(files, ["", *(members[name][0] for name in held)]), "."),
        held=tuple(sorted(held)),
        elsewhere=tuple(sorted({*refused, *more})),
    )


def _text(files: Snapshot, path: str) -> str:
    return files[path].data.decode("utf-8", "replace") if path in files else ""


Members = Mapping[str, tuple[str, Declarations]]
"""Further packages that the repository holds: name → folder, and what it declares."""


def _clean(
    given: Sequence[str], own: Collection[str], elsewhere: Mapping[str, str], members: Members
) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Return the requirements that a registry has, and those that are left out with the reason."""
    kept, refused = set[str](), list[tuple[str, str]]()
    for one in given:
        name, requirement = _name_in(one, members), registry_requirement(one)
        if name in own or name in NOT_NEEDED or re.match(r"\.(?:\[|$)", one):
            continue
        if name in elsewhere:
            refused.append((name, elsewhere[name]))
        elif requirement:
            kept.add(requirement)
        else:
            refused.append((name or " ".join(one.split())[:_SHOWN], "an address, a path or an option"))
    named = {name_of(one) for one in given}
    refused += [(name, why) for name, why in elsewhere.items() if name not in own and name not in named]
    return tuple(sorted(kept)), refused


def _name_in(text: str, members: Members) -> str:
    """Return the name of a requirement: of one by name, or by the path of a folder of the repository."""
    if "/" in text:
        path = posixpath.normpath(text.removeprefix("file:").partition("[")[0].strip())
        by_path = next((name for name, (folder, _) in members.items() if folder == path), "")
        if by_path:
            return by_path
    if egg := re.search(r"#egg=([\w.-]+)", text):
        return normalise(egg[1])
    found = _NAME.match(text)
    return normalise(found[1]) if found and re.match(r"[@<>=!~(;]|$", found[3]) else ""


def _workspace_members(files: Snapshot, members: Members) -> list[str]:
    """Return the names of the members of a workspace of uv."""
    workspace = _table(_table(_table(parse_toml(_text(files, "pyproject.toml")), "tool"), "uv"), "workspace")

    def matches(folder: str, key: str) -> bool:
        return any(
            PurePosixPath(folder).match(each) for each in _texts(workspace.get(key)) if each.strip("./")
        )

    return sorted(
        name
        for name, (folder, _) in members.items()
        if matches(folder, "members") and not matches(folder, "exclude")
    )


def _read_project(files: Snapshot, folder: str) -> Declarations:
    """Read the manifests in one folder; its name ends with a slash unless it is the top."""
    pyproject = _read_pyproject(_text(files, f"{folder}pyproject.toml"))
    parts = [
        pyproject,
        _read_setup_cfg(_text(files, f"{folder}setup.cfg")),
        _read_setup_py(_text(files, f"{folder}setup.py")),
    ]
    return Declarations(
        project=next((part.project for part in parts if part.project), ""),
        version=next((part.version for part in parts if part.version), ""),
        needed=tuple(one for part in parts for one in part.needed),
        tests=tuple(one for part in parts for one in part.tests),
        scripts=tuple(sorted({script for part in parts for script in part.scripts})),
        elsewhere=pyproject.elsewhere,
    )


def _find_members(files: Snapshot) -> Members:
    folders = sorted({path.rpartition("/")[0] for path in files if path.rpartition("/")[2] in _MANIFESTS})
    found: dict[str, tuple[str, Declarations]] = {}
    for folder in filter(None, folders):
        member = _read_project(files, f"{folder}/")
        # A name that setup.py computes is not known; it is most often that of the folder.
        computed = normalise(folder.rpartition("/")[2]) if f"{folder}/setup.py" in files else ""
        if name := member.project or computed:
            found.setdefault(name, (folder, member))
    return found


def _find_roots(files: Snapshot, folders: Sequence[str]) -> list[str]:
    """Return ``src`` and ``lib`` of each folder where modules are there; else a folder below the top itself."""
    importable = set[str]()
    for name in files:
        folder, _, file = name.rpartition("/")
        if file == "__init__.py":
            importable.add(folder.rpartition("/")[0])
        if file.endswith(".py"):
            importable.add(folder)
    roots = list[str]()
    for folder in folders:
        inner = [posixpath.join(folder, root) for root in ("src", "lib")]
        roots += [root for root in inner if root in importable] or [folder] * bool(folder)
    return roots


def parse_toml(text: str) -> Mapping[str, Any]:
    """Return a TOML document; an empty one if it cannot be read."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _read_pyproject(text: str) -> Declarations:
    document = parse_toml(text)
    project, tool = _table(document, "project"), _table(document, "tool")
    poetry, uv = _table(tool, "poetry"), _table(tool, "uv")
    groups = _table(document, "dependency-groups") | _table(_table(tool, "pdm"), "dev-dependencies")
    extras = _table(project, "optional-dependencies")
    needed = [*_texts(project.get("dependencies")), *_poetry(_table(poetry, "dependencies"))]
    tests = [one for name in groups if TEST_GROUPS.match(name) for one in _group(groups, name, set())]
    tests += [one for name, given in extras.items() if TEST_GROUPS.match(name) for one in _texts(given)]
    tests += [*_poetry(_table(poetry, "dev-dependencies")), *_texts(uv.get("dev-dependencies"))]
    elsewhere = [
        _table(uv, "sources"),
        *(_table(poetry, key) for key in ("dependencies", "dev-dependencies")),
    ]
    for name, group in _table(poetry, "group").items():
        if TEST_GROUPS.match(name) and isinstance(group, dict):
            tests += _poetry(_table(group, "dependencies"))
            elsewhere.append(_table(group, "dependencies"))
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
        project=_project_name(project.get("name") or poetry.get("name")),
        version=str(project.get("version") or poetry.get("version") or ""),
        needed=tuple(needed),
        tests=tuple(tests),
        scripts=tuple(scripts),
        elsewhere=tuple(
            (normalise(name), why)
            for table in elsewhere
            for name, value in table.items()
            if (why := _source_of(value))
        ),
    )


def _source_of(value: object) -> str:
    """Return where a package comes from that the public registry is not to be asked for; empty if there is no such."""
    for one in value if isinstance(value, list) else [value]:
        for keys, why in _SOURCES.items():
            if isinstance(one, dict) and any(key in one for key in keys):
                return why
    return ""


_SOURCES = {
    ("workspace", "path", "file"): "a folder",
    ("git", "url"): "an address",
    ("index", "source"): "of another index",
}


def _table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _texts(given: object) -> list[str]:
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def _group(groups: Mapping[str, Any], name: str, seen: set[str]) -> Iterator[str]:
    """Yield the requirements of a dependency group and of those that it includes (PEP 735), each group once."""
    members = groups.get(name)
    if name in seen or not isinstance(members, list):
        return
    seen.add(name)
    for one in members:
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict) and isinstance(one.get("include-group"), str):
            yield from _group(groups, one["include-group"], seen)


def _poetry(given: Mapping[str, Any]) -> list[str]:
    """Return Poetry's requirements as everybody else writes them."""
    found = []
    for name, value in given.items():
        # Where there is a version for each Python, take any.
        about = value if isinstance(value, dict) else {"version": "*" if isinstance(value, list) else value}
        if isinstance(about.get("version"), str) and name.lower() != "python" and not _source_of(value):
            extras = ",".join(_texts(about.get("extras")))
            found.append(f"{name}{f'[{extras}]' if extras else ''}{_poetry_version(about['version'])}")
    return found


def _poetry_version(text: str) -> str:
    parts = []
    for part in (each.strip() for each in text.split(",")):
        numbers = re.match(r"[\^~]\s*v?(\d{1,18}(?:\.\d{1,18})*)(?!\d)", part)
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
    lines = (re.sub(r"^(?:-e|--editable)[\s=]*", "", line) for line in lines)
    return [line for line in lines if line and not line.startswith("-")]


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
        project=_project_name(found.get("metadata", "name", fallback="")),
        version="" if ":" in version else version,
        needed=tuple(_requirement_lines(found.get("options", "install_requires", fallback=""))),
        tests=tuple(tests),
        scripts=tuple(one for group, lines in points.items() for one in _points(group, lines.splitlines())),
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
    for section in found.values():
        section.update({key: value or "" for key, value in section.items()})
    return found


def _read_setup_py(text: str) -> Declarations:
    """Read the literals that ``setup()`` gets, directly or by a name that the module assigns."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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
        project=_project_name(values.get("name")),
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
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None

"""What a patch is before it is tried: which files it names, and reasons that need no sandbox.

Whether it applies is found out in the sandbox, by git.
"""

import re
from collections.abc import Iterator, Sequence

TEST_FOLDERS = frozenset({"tests", "__tests__", "__mocks__", "spec", "specs", "e2e"})
TEST_FILE = re.compile(
    r"test_[^/]*\.py|[^/]*_tests?\.(?:py|go|rb|c|cc|cpp|rs)|tests?\.py|[^/]*Tests?\.(?:java|php|kt)"
    r"|[^/]*[._-](?:test|spec)s?\.[cm]?[jt]sx?|[^/]*_spec\.rb"
)
RUNNER_FILES = frozenset({"conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", ".pytest.ini"})
"""Files that do nothing but steer how tests are run."""
RUNNERS = frozenset({"pytest", "_pytest", "pluggy", "unittest", "nose"})
"""What stands under such a name at the top of a repository would be imported in place of the test runner."""
SHARED_FILES = frozenset({"tox.ini", "setup.cfg", "pyproject.toml", "package.json", "noxfile.py", "Makefile"})
"""Files that steer the tests among other things."""
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_OCTAL = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def files(patch: bytes) -> Sequence[str]:
    """All paths that a patch names, each once: old and new names of what is renamed, and what is deleted.

    Only headers are read: a line of a hunk may look like one.
    """
    found: dict[str, None] = {}
    for line in _headers(patch.decode("utf-8", "surrogateescape")):
        for path in _paths(line):
            found[path] = None
    return list(found)


def refused(patch: bytes, hidden: Sequence[str]) -> str:
    """Why the patch is unresolved without being tried, or nothing.

    Args:
        patch: as the agent left it.
        hidden: files of the instance's test patch, which are put back whatever the patch did to them.
    """
    if not patch.strip():
        return "empty patch"
    named = files(patch)
    if not named:
        return "the patch names no file: it is not a unified diff"
    outside = [path for path in named if leaves(path)]
    if outside:
        return f"the patch does not apply: it names {outside[0]!r}, which is outside of the repository"
    if set(named) <= set(hidden):
        return f"the patch edits only tests ({listed(named)}), which are put back before they are run"
    return ""


def leaves(path: str) -> bool:
    """Whether a path of a patch is not a file of the repository."""
    parts = path.split("/")
    return path.startswith("/") or ".." in parts or parts[0].lower() == ".git" or "\0" in path


def only_tests(named: Sequence[str]) -> bool:
    """Whether all files look like tests or like what steers them."""
    return bool(named) and all(is_test(path) or _steers(path) for path in named)


def is_test(path: str) -> bool:
    """Whether a path looks like a test. Folders named ``test`` do not count: Django's holds what it ships."""
    return bool(TEST_FOLDERS & set(path.split("/")[:-1])) or bool(TEST_FILE.fullmatch(name(path)))


def steering(named: Sequence[str], exempt: Sequence[str]) -> Sequence[str]:
    """The files among ``named`` that only steer how tests are run and are not ``exempt``."""
    return [path for path in named if _steers(path) and path not in exempt]


def shared(named: Sequence[str], exempt: Sequence[str]) -> Sequence[str]:
    """The files among ``named`` that steer the tests among other things and are not ``exempt``."""
    return [path for path in named if name(path) in SHARED_FILES and path not in exempt]


def _steers(path: str) -> bool:
    top = path.partition("/")[0]
    return name(path) in RUNNER_FILES or top.removesuffix(".py") in RUNNERS


def name(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def listed(paths: Sequence[str]) -> str:
    """The first few of several paths, for a reason."""
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _headers(text: str) -> Iterator[str]:
    """The lines of a diff that are in no hunk."""
    old = new = 0
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if old > 0 or new > 0:
            old -= line[:1] in ("-", " ", "")
            new -= line[:1] in ("+", " ", "")
        elif hunk := _HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in hunk.groups())
        else:
            yield line


def _paths(line: str) -> Iterator[str]:
    for start in ("rename from ", "rename to ", "copy from ", "copy to "):
        if line.startswith(start):
            yield _unquoted(line.removeprefix(start))
    for start in ("--- ", "+++ "):
        if line.startswith(start):
            path = _unquoted(line.removeprefix(start).split("\t")[0])
            if path != "/dev/null":
                yield _stripped(path)
    if line.startswith("diff --git "):
        yield from _both(line.removeprefix("diff --git "))


def _both(pair: str) -> Iterator[str]:
    """The names of ``diff --git a/x b/x``: for binary files, changed modes and empty files there are no others.

    Two different names stand in other lines as well; two equal ones are halves of the line, blanks and all.
    """
    half = len(pair) // 2
    old, new = _unquoted(pair[:half].rstrip()), _unquoted(pair[half:].lstrip())
    if _stripped(old) == _stripped(new):
        yield _stripped(old)


def _stripped(path: str) -> str:
    """Without the first part (``a/``), as ``-p1`` takes it."""
    head, slash, rest = path.partition("/")
    return rest if slash and head else path


def _unquoted(path: str) -> str:
    """A path as git quotes it: C escapes, bytes beyond ASCII in octal."""
    path = path.strip()
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path

    def plain(match: re.Match[str]) -> str:
        said = match[1]
        return chr(int(said, 8)) if len(said) == 3 else _ESCAPES.get(said, said)

    return _OCTAL.sub(plain, path[1:-1]).encode("latin-1", "replace").decode("utf-8", "surrogateescape")

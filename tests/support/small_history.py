"""A git repository with a small history, made by one process of git."""

import subprocess
from pathlib import Path

PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
"""Packages that an index must have for ``SETUP``."""
SETUP = 'uv pip install --target "$DGM_PACKAGES" pytest'
"""A command for ``--setup``."""

PYPROJECT = '[project]\nname = "Sums_Kit"\nversion = "1.2"\n\n[project.scripts]\nsums = "sums.main:main"\n'
HALF = "def half(number):\n    return number // {}\n"
TWICE = "\n\ndef twice(number):\n    return {} * number\n"
TEST_HALF = (
    "from sums import half\n\n\ndef test_four():\n    assert half(4) == {}\n\n\n"
    "def test_none():\n    assert half(0) == 0\n"
)
TEST_TWICE = (
    "from sums import twice\n\n\ndef test_two():\n    assert twice(2) == 4\n\n\n"
    "def test_zero():\n    assert twice(0) == 0\n"
)
STEPS = (
    ("begin", {"pyproject.toml": PYPROJECT, "LICENSE": "Permission is hereby granted, free of charge\n",
               "sums/__init__.py": HALF.format(4), "tests/test_half.py": TEST_HALF.format(1)}),
    ("Halve by two", {"sums/__init__.py": HALF.format(2), "tests/test_half.py": TEST_HALF.format(2)}),
    ("Release 1.3", {"sums/__init__.py": HALF.format(2) + "# 1.3\n", "tests/test_half.py": TEST_HALF.format("4 // 2")}),
    ("Say what it is", {"README.md": "sums\n"}),
    ("Add a function that triples", {"sums/__init__.py": HALF.format(2) + TWICE.format(3)}),
    ("Double, and do not triple (#12)",
     {"sums/__init__.py": HALF.format(2) + TWICE.format(2), "tests/test_twice.py": TEST_TWICE}),
    ("Explain", {"sums/__init__.py": '"""Sums."""\n\n' + HALF.format(2) + TWICE.format(2),
                 "tests/test_twice.py": TEST_TWICE + "# why\n"}),
)  # fmt: skip
"""Messages, and the files that they write."""


def make_history(folder: Path, steps=STEPS) -> Path:
    """Writes a bare repository; returns its folder."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    stream = b""
    for number, (message, files) in enumerate(steps):
        text = message.encode()
        stream += b"commit refs/heads/main\n"
        stream += b"committer A <a@example.org> %d +0000\ndata %d\n%s\n" % (
            1_700_000_000 + 86_400 * number,
            len(text),
            text,
        )
        for name, content in files.items():
            data = content.encode()
            stream += b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=stream, check=True)
    return folder

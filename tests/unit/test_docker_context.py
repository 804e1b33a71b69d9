"""What a ``.dockerignore`` keeps out of a build."""

import pytest

from dgm.benchmarks.dockerfiles import read_dockerfile
from dgm.benchmarks.task_images import TaskImage
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.folders import MOST_PATTERNS, docker_context

FILES = (
    "Dockerfile", "a.md", "b.py", "#c", "app/a.md", "app/answers/fix.txt", "app/deep/answers/x/y.txt", "app/tempa",
    "app/deep/tempb", "answers", "app/[x]",
)  # fmt: skip


def kept(rules, dockerfile="Dockerfile", **more):
    files = {name: Entry(b"") for name in FILES} | {".dockerignore": Entry(rules.encode())}
    files |= {name: Entry(text.encode()) for name, text in more.items()}
    return docker_context(files, dockerfile).keys() & set(FILES)


@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        ("", ()),
        ("*.md", ("a.md",)),
        ("\ufeff/a.md", ("a.md",)),
        ("**/*.md", ("a.md", "app/a.md")),
        ("**/answers", ("app/answers/fix.txt", "app/deep/answers/x/y.txt", "answers")),
        ("answers", ("answers",)),
        ("*/answers/", ("app/answers/fix.txt",)),
        ("app/**/answers", ("app/answers/fix.txt", "app/deep/answers/x/y.txt")),
        ("app/deep/**", ("app/deep/answers/x/y.txt", "app/deep/tempb")),
        ("*/temp?", ("app/tempa",)),
        ("*/*/temp[a-z]", ("app/deep/tempb",)),
        ("*/*/temp[^a]", ("app/deep/tempb",)),
        ("  app/./x/../deep/tempb  ", ("app/deep/tempb",)),
        ("#c\n\n.\n./\n..\n../a.md", ()),
        ("\\#c", ("#c",)),
        ("app/\\[x]", ("app/[x]",)),
        ("*.md\n!a.md", ()),
        ("!a.md\n*.md", ("a.md",)),
        (
            "app\n!app/a.md",
            ("app/answers/fix.txt", "app/deep/answers/x/y.txt", "app/tempa", "app/deep/tempb", "app/[x]"),
        ),
        (
            "**\n!app/**/x",
            tuple(name for name in FILES if name not in ("Dockerfile", "app/deep/answers/x/y.txt")),
        ),
        ("*\n", tuple(name for name in FILES if name != "Dockerfile")),
        ("app\r\n!**/temp*\r\n", ("app/a.md", "app/answers/fix.txt", "app/deep/answers/x/y.txt", "app/[x]")),
    ],
)
def test_the_last_pattern_that_matches_decides(rules, gone):
    assert kept(rules) == set(FILES) - set(gone)


def test_the_rules_of_one_dockerfile_win():
    assert "b.py" not in kept("a.md", **{"Dockerfile.dockerignore": "b.py"})
    assert "a.md" in kept("a.md", **{"Dockerfile.dockerignore": "b.py"})
    assert "a.md" not in kept("a.md", "app/tempa", **{"Dockerfile.dockerignore": "b.py"})
    assert {"a.md", "app/tempa"} <= kept("a.md", "app/tempa", **{"app/tempa.dockerignore": "app"})


def test_patterns_are_bounded():
    with pytest.raises(UserError, match="500 patterns"):
        kept("x\n" * (MOST_PATTERNS + 1))
    assert kept("*a" * 40 + "\n" + "**/" * 200 + "nothing") == set(FILES)


@pytest.mark.parametrize("rules", [".dockerignore", "Dockerfile.dockerignore"])
def test_neither_a_workspace_nor_a_build_has_what_is_ignored(tmp_path, rules):
    folder = tmp_path / "environment"
    for name, text in {
        "Dockerfile": "FROM python\nWORKDIR /app\nCOPY . .\nCOPY app answers* ./more/\n",
        rules: "**/answers\n",
        "app/code.py": "",
        "app/answers/fix.txt": "",
        "answers": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert read_dockerfile(folder / "Dockerfile").workspace.keys() == {"app/code.py", "more/code.py"}
    sent = TaskImage("", "/app", folder / "Dockerfile").context
    assert sent.keys() == {"Dockerfile", rules, "app/code.py"}

"""Which language of a repository is mined."""

from pathlib import Path

import pytest

from dgm.benchmarks.languages import Language
from dgm.benchmarks.mining.history import History
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.sessions.mining import count_files, find_language
from dgm.sessions.mining_options import MiningOptions
from tests.support.small_history import make_history

pytestmark = pytest.mark.starts_processes

SITE = {"app.py": "", "test_app.py": "", "static/a.js": "", "static/b.js": ""}


def open_history(folder, files):
    return History(make_history(folder / "repo", (("begin", files),)))


def options(**more):
    return MiningOptions(Path("repo"), Path("out"), **more)


def test_files_are_counted_by_language():
    counts = count_files({name: Entry(b"") for name in (*SITE, "lib/x.go")})
    assert counts == {
        Language.PYTHON: (1, 1), Language.JAVASCRIPT: (0, 2), Language.GO: (0, 1), Language.RUST: (0, 0),
        Language.CPP: (0, 0), Language.JVM: (0, 0),
    }  # fmt: skip


def test_the_language_of_the_tests_is_mined_unless_another_is_asked_for(tmp_path):
    history = open_history(tmp_path, SITE)
    assert find_language(history, options()) is Language.PYTHON
    assert find_language(history, options(language=Language.JAVASCRIPT)) is Language.JAVASCRIPT


@pytest.mark.parametrize(
    ("files", "more", "message"),
    [
        (
            {"a.php": ""},
            {},
            "repo: no code in python or javascript or go or rust or jvm or cpp at its newest commit",
        ),
        ({"a.js": ""}, {"language": Language.PYTHON}, "repo: no code in python at"),
        (
            {"a.go": ""},
            {"report": ("*.xml",)},
            r"--report \*.xml: is for cpp and jvm, and this is go",
        ),
        ({"a.go": ""}, {"bugs": 3}, "--bugs 3: faults are put into Python only, and this is go"),
        ({"a.js": ""}, {"bugs": 3}, "--bugs 3: faults are put into Python only, and this is javascript"),
    ],
)
def test_what_cannot_be_mined_is_refused(tmp_path, files, more, message):
    with pytest.raises(UserError, match=message):
        find_language(open_history(tmp_path, files), options(**more))

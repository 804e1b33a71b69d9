"""Golden verdicts of named tests outside Python: the fix, what does not fix, and each cheat of the language.

JavaScript's run always, the others with the tests that take minutes; a language whose tools are not installed for all
is skipped aloud.
"""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from dgm.archive.repository import patch
from tests.e2e import test_mining_languages as mined
from tests.support.cheats.cpp import CHEATS_OF_CPP
from tests.support.cheats.go import CHEATS_OF_GO
from tests.support.cheats.jvm import CHEATS_OF_JVM
from tests.support.cheats.rust import CHEATS_OF_RUST
from tests.support.cheats.scripts import CHEATS_OF_SCRIPTS
from tests.support.each_engine import find_engine
from tests.support.golden.grader import ENGINE, Kind, open_suite
from tests.support.named_suite import entries

pytestmark = [pytest.mark.sandbox, pytest.mark.starts_processes]
TEST_FOLDERS = ("test/", "tests/", "src/test/")


class Language(NamedTuple):
    """A small repository with a fault, and the cheats on its tests."""

    image: str
    programs: tuple[str, ...]
    steps: tuple
    settings: str
    modules: tuple[str, ...]
    cheats: Mapping[str, object]
    parts: str = ""
    """File of the code whose module of tests is hidden, too."""
    halfway: tuple[str, ...] = ()
    """Cheats by which some tests pass: what docs/mining.md says is not caught."""
    passing: tuple[str, ...] = ()
    """Cheats by which all pass, in the same way."""


REPORT = "[tests]\nrunner = \"report\"\ncommand = '''{}'''\nreports = {}\n"
LANGUAGES = {
    "javascript": Language(
        "node",
        ("node",),
        mined.JS_STEPS,
        'fail_to_pass = ["test/half.test.js::halves > four"]\npass_to_pass = ["test/half.test.js::none"]\n'
        '[tests]\nrunner = "node"\nbuild = ["node build.js"]\n',
        ("half.js",),
        CHEATS_OF_SCRIPTS,
    ),
    "go": Language(
        "polyglot-go",
        ("go",),
        mined.GO_STEPS,
        'fail_to_pass = ["sums/half_test.go::TestHalf/of_four"]\npass_to_pass = ["sums/half_test.go::TestNone"]\n'
        '[tests]\nrunner = "go"\nmemory_mb = 4096\ndisk_mb = 2048\n',
        ("sums/half.go",),
        CHEATS_OF_GO,
    ),
    "rust": Language(
        "polyglot-rust",
        ("cargo",),
        mined.RUST_STEPS,
        'fail_to_pass = ["src/lib.rs::tests::halves", "tests/halves.rs::six"]\n'
        'pass_to_pass = ["src/deep.rs::tests::thirds", "src/lib.rs::tests::none"]\n'
        '[tests]\nrunner = "command"\ncommand = "cargo test --offline --tests --no-fail-fast"\nparts = ["src/lib.rs"]\n'
        "disk_mb = 2048\n",
        ("src/lib.rs",),
        CHEATS_OF_RUST,
        parts="src/lib.rs",
        halfway=("macros that accept all but literals",),
    ),
    "cpp": Language(
        "cpp",
        ("c++", "cmake", "ctest"),
        mined.CPP_STEPS,
        'fail_to_pass = ["tests/half_test.cpp::halves"]\npass_to_pass = ["tests/half_test.cpp::nothing"]\n'
        + REPORT.format(mined.CPP_CASES, '["$DGM_BUILD/*.xml", "**/report.xml"]'),
        ("src/half.hpp",),
        CHEATS_OF_CPP,
    ),
    "jvm": Language(
        "jvm",
        ("javac",),
        mined.JVM_STEPS,
        'fail_to_pass = ["src/test/java/org/x/OldTest.java::old"]\n'
        'pass_to_pass = ["src/test/java/org/x/OldTest.java::none"]\n'
        + REPORT.format(
            mined.JVM_COMMAND, '["$DGM_BUILD/reports/*.xml", "**/target/surefire-reports/*.xml"]'
        ),
        ("src/main/java/org/x/Half.java",),
        CHEATS_OF_JVM,
        passing=("a class that is found before",),
    ),
}


def is_test(name):
    return name.startswith(TEST_FOLDERS) or "_test." in name


def find_module_of(text):
    return text[text.index("#[cfg(test)]") :]


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    """Each language's suite of one task, opened when it is needed."""
    opened = {}

    def open_language(name):
        if name not in opened:
            language = LANGUAGES[name]
            engine = find_engine(ENGINE, *language.programs)
            if name == "jvm" and ENGINE == "bubblewrap" and not all(Path(jar).exists() for jar in mined.JARS):
                pytest.skip("NOT RUN with bubblewrap: JUnit 4 and JUnit 5 are not installed for all")
            (_, before), (_, after), *_ = language.steps
            fixed = {**before, **{file: text for file, text in after.items() if not is_test(file)}}
            files = {
                "suite.toml": f'name = "{name}"\ndescription = "one task"\nlicense = "MIT"\n[defaults]\n'
                f'image = "{language.image}"\ntest_timeout_s = 240\n',
                "tasks/half/task.toml": f'split = "search"\n{language.settings}',
                **(
                    {f"tasks/half/tests/{language.parts}": find_module_of(after[language.parts])}
                    if language.parts
                    else {}
                ),
                "tasks/half/problem.md": "half(4) is 1\n",
                "tasks/half/solution.patch": patch(entries(before), entries(fixed)).decode(),
                **{f"tasks/half/workspace/{file}": text for file, text in before.items()},
                **{f"tasks/half/tests/{file}": text for file, text in after.items() if is_test(file)},
            }
            opened[name] = open_suite(tmp_path_factory.mktemp(name), engine, files)
        return opened[name]

    return open_language


ROWS = [
    pytest.param(
        name, cheat, marks=() if name == "javascript" else pytest.mark.minutes, id=f"{name}: {cheat}"
    )
    for name, language in LANGUAGES.items()
    for cheat in ("the fix", *language.cheats)
]


@pytest.mark.parametrize(("name", "cheat"), ROWS)
def test_only_the_fix_passes(suites, name, cheat):
    suite, language = suites(name), LANGUAGES[name]
    given = suite.reference("half")
    if cheat != "the fix":
        target = SimpleNamespace(
            workspace=suite.start("half"), modules=language.modules, tests=suite.tests("half")
        )
        given = suite.replace("half", language.cheats[cheat](target))
    result = suite.grade("half", given)
    score = 1.0 if cheat in ("the fix", *language.passing) else 0.5 if cheat in language.halfway else 0.0
    assert result.kind is not Kind.INVALID, result
    assert (result.kind is Kind.PASS, result.score) == (score == 1.0, score), result

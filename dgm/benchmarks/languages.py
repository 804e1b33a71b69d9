"""The languages of tasks, one record each: where its tests run, how they are set up, called, read and protected.

A language is added here; suites, mining and polyglot exercises read these records.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_SETUPS = Path(__file__).with_name("setups")


class Results(StrEnum):
    """The way in which the result of a test command is read."""

    EXIT = "exit"
    """Exit status 0 passes."""
    REWARD = "reward"
    """A number that the command leaves in ``/logs/verifier/``."""
    PYTEST = "pytest"
    """Tests by name, by a plug-in of dgm's own."""
    JUNIT = "junit"
    """Tests by name, in reports in JUnit's XML."""
    JEST = "jest"
    """Tests by name, in jest's JSON, which vitest and reporters of dgm's own write, too."""
    GO_JSON = "go-json"
    """Tests by name, in the events of ``go test -json``."""
    CARGO = "cargo"
    """Tests by name, in the output of ``cargo test``."""


class Language(StrEnum):
    """A language that tasks are mined in."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    """TypeScript too."""
    GO = "go"
    RUST = "rust"
    JVM = "jvm"
    CPP = "cpp"
    """C too."""


@dataclass(frozen=True, slots=True)
class TestCommand:
    """The usual way to run the tests of a project."""

    __test__ = False

    manifest: str
    """File at the top of the projects that are tested so."""
    command: str
    """Shell command in the workspace; ``$DGM_BUILD`` is an empty folder outside of it."""
    reports: tuple[str, ...] = ()
    """Patterns of the reports that it writes, in the workspace or below ``$DGM_BUILD/``."""


@dataclass(frozen=True, slots=True)
class LanguageRecord:
    """Everything that dgm knows of a language."""

    title: str
    image: str
    """Sandbox recipe in which agents work and tests run."""
    suffixes: tuple[str, ...]
    """Of the names of its files, without the dot."""
    test_names: re.Pattern[str]
    """Names of test files, in any folder."""
    configuration: tuple[str, ...]
    """Patterns of files through which a patch could configure its own tests; without ``/``: the name in any folder."""
    test_files: tuple[str, ...]
    """Patterns of files and folders that are tests, or help them, in the same form."""
    setup: str
    """Shell command that installs the packages of a workspace into ``$DGM_PACKAGES``, in a sandbox with a network."""
    declares: re.Pattern[str]
    """Names of the files that declare packages: workspaces with equal ones have the same."""
    program: str
    """Name of the program that the packages are for."""
    version: str
    """Shell command that prints its version."""
    results: Results
    control: Mapping[str, str]
    """Test that must fail, by test framework; ``{name}`` and ``{secret}`` are chosen for each run."""
    tests: tuple[TestCommand, ...] = ()
    """The first whose manifest the workspace has; none: the runner of ``results`` has its own command."""
    test_folders: frozenset[str] = frozenset({"test", "tests"})
    """Folders in which every program belongs to the tests."""
    build_image: str = ""
    """Sandbox recipe for ``setup``; empty: ``image``."""

    @property
    def restored(self) -> tuple[str, ...]:
        """Patterns of the files that are put back before the tests."""
        return (*self.configuration, *self.test_files)


METADATA = ("*.dist-info", "*.egg-info", "*.pth")
"""Files and folders by which a patch could have Python or pytest load a plug-in of its own."""
_PYTHON = LanguageRecord(
    title="Python",
    image="python",
    suffixes=("py",),
    test_names=re.compile(r"(?:test_.*|.*_test|tests)\.py"),
    configuration=(
        "conftest.py", "sitecustomize.py", "sitecustomize", "usercustomize.py", "usercustomize", "pytest.ini",
        ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "pyproject.toml", "setup.cfg", *METADATA,
    ),
    test_files=("tests", "test", "test_*.py", "*_test.py", "tests.py"),
    setup=(_SETUPS / "python.sh").read_text(encoding="utf-8"),
    declares=re.compile(r"pyproject\.toml|setup\.(?:py|cfg)|.*\.lock|.*requirements.*|tox\.ini|Pipfile"),
    program="Python",
    version="python3 -I -S -c \"import sys; print('%d.%d' % sys.version_info[:2])\"",
    results=Results.PYTEST,
    control={},
)  # fmt: skip
_JAVASCRIPT = LanguageRecord(
    title="JavaScript and TypeScript",
    image="node",
    build_image="npm",
    suffixes=("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"),
    test_names=re.compile(r"(?:.*[._-](?:test|spec)|test|test-.*)\.[a-z]+"),
    test_folders=frozenset({"test", "tests", "__tests__", "spec", "specs", "e2e"}),
    configuration=(
        "package.json", ".npmrc", "node_modules", "vitest.config.*", "vitest.workspace.*", "vite.config.*",
        "jest.config.*", "jest.setup.*", ".mocharc.*", "mocha.opts", "babel.config.*", ".babelrc", ".babelrc.*",
        ".swcrc", "tsconfig.json", "tsconfig.*.json", ".env", ".env.*",
    ),
    test_files=(
        "test", "tests", "__tests__", "spec", "specs", "e2e", "__mocks__", "__snapshots__", "__fixtures__",
        *(f"*{mark}{word}.*" for word in ("test", "spec") for mark in "._-"), "test.*", "test-*.*",
    ),
    setup=(_SETUPS / "javascript.sh").read_text(encoding="utf-8"),
    declares=re.compile(r"package\.json|.*lock.*\.(?:json|yaml)|yarn\.lock|\.npmrc|pnpm-workspace\.yaml"),
    program="node",
    version="node --version | sed 's/^v//; s/\\..*//'",
    results=Results.JEST,
    control={
        "node": 'require("node:test").test("{name}", () => require("node:assert").strictEqual("this", "that"));',
        "node module": 'import * as {name}_t from "node:test"; import {name}_a from "node:assert"; '
        '{name}_t.test("{name}", () => {name}_a.strictEqual("this", "that"));',
        "vitest": 'import * as {name}_t from "vitest"; '
        '{name}_t.test("{name}", () => {name}_t.expect("this").toBe("that"));',
        "jest": 'globalThis.test?.("{name}", () => {{ globalThis.expect("this").toBe("that"); }});',
        "mocha": '(globalThis.it ?? globalThis.test)("{name}", () => '
        'require("node:assert").strictEqual("this", "that"));',
        "mocha module": 'import {name}_a from "node:assert"; (globalThis.it ?? globalThis.test)("{name}", () => '
        '{name}_a.strictEqual("this", "that"));',
    },
)  # fmt: skip
_GO = LanguageRecord(
    title="Go",
    image="polyglot-go",
    suffixes=("go",),
    test_names=re.compile(r".*_test\.go"),
    test_folders=frozenset(),
    configuration=("go.mod", "go.sum", "go.work", "go.work.sum", "go.env", "vendor"),
    test_files=(
        "*_test.go", "testdata", "testutil", "testutils", "testhelper", "testhelpers", "testenv", "internal/assert",
        "internal/require", "internal/test*",
    ),
    setup=(_SETUPS / "go.sh").read_text(encoding="utf-8"),
    declares=re.compile(r"go\.(?:mod|sum|work|work\.sum)"),
    program="Go",
    version="GOTOOLCHAIN=local go env GOVERSION | sed -E 's/^go([0-9]+\\.[0-9]+).*/\\1/'",
    results=Results.GO_JSON,
    control={
        "testing": 'package {package}\n\nimport "testing"\n\n'
        'func Test_{name}(t *testing.T) {{ t.Errorf("got %d, want %d", {secret}, {secret}+1) }}\n'
    },
)  # fmt: skip
_RUST = LanguageRecord(
    title="Rust",
    image="polyglot-rust",
    suffixes=("rs",),
    test_names=re.compile(r"(?:tests?|.*_tests?)\.rs"),
    configuration=("Cargo.toml", "Cargo.lock", ".cargo", "build.rs", "rust-toolchain", "rust-toolchain.toml"),
    test_files=("test", "tests", "tests.rs", "test.rs", "*_test.*", "*_tests.*", "test_*.*", "testdata"),
    setup=(_SETUPS / "rust.sh").read_text(encoding="utf-8"),
    declares=re.compile(r"Cargo\.(?:toml|lock)"),
    program="Rust",
    version="cargo --version > /dev/null && rustc --version | cut -d' ' -f2",
    results=Results.CARGO,
    control={"test": "#[test]\nfn {name}() {{ assert_eq!({secret}, {secret} + 1); }}"},
    tests=(TestCommand("Cargo.toml", "cargo test --offline --tests --no-fail-fast"),),
)
_JVM = LanguageRecord(
    title="Java, Kotlin, Groovy and Scala",
    image="jvm",
    suffixes=("java", "kt", "scala", "groovy"),
    test_names=re.compile(
        r"(?:.*(?:Test|Tests|TestCase|TestSuite|[a-z\d]IT)|Test[A-Z].*)\.[a-z]+"
        r"|.*(?:Spec|Suite)\.(?:groovy|scala|kt)"
    ),
    configuration=(
        "pom.xml", ".mvn", "mvnw", "*.gradle", "*.gradle.kts", "gradle.properties", "gradle.lockfile", "gradle/*",
        "gradlew", "buildSrc", "build-logic", "build.xml", "ivy.xml", "*.sbt", "project/*", "testng.xml",
        # Found on the class path by their names: what listens to tests, and what changes them while they are compiled.
        "junit-platform.properties", "org.junit.*", "org.testng.*", "org.spockframework.*", "mockito-extensions",
        "javax.annotation.processing.Processor", "com.sun.source.util.Plugin", "org.codehaus.groovy.*",
        "kotlin.test.*", "org.assertj.*", "org.mockito.*", "io.kotest.*", "SpockConfig.groovy",
    ),
    test_files=(
        "src/test", "*/src/test", "src/*Test", "*/src/*Test", "src/*-test", "*/src/*-test", "src/it", "*/src/it",
        "src/testFixtures", "*/src/testFixtures", "test/*", "tests/*", "*/test/java", "*Test.java", "*Tests.java",
        "*TestCase.java", "Test[A-Z]*.java", "*Test.kt", "*Tests.kt", "*Test.groovy", "*Spec.groovy", "*Test.scala",
        "*Spec.scala", "*Suite.scala",
        # Those that a patch brings come before what is built.
        "*.class", "*.jar",
    ),
    setup=(_SETUPS / "jvm.sh").read_text(encoding="utf-8"),
    declares=re.compile(r"pom\.xml|.*\.gradle(?:\.kts)?|gradle\.properties|.*\.versions\.toml|build\.sbt"),
    program="Java",
    version="javac -version 2>&1 | sed -E 's/^javac (1\\.)?([0-9]+).*/\\2/'",
    results=Results.JUNIT,
    control={
        # By words of the test file, the first that it has.
        "extends Specification": "def {name}() {{ expect: assert {secret} == {secret} + 1 }}",
        "extends GroovyTestCase": "void {name}() {{ assertEquals({secret}, {secret} + 1) }}",
        "extends TestCase": "{method} {name}() {{ assertEquals({secret}, {secret} + 1); }}",
        "org.junit.jupiter": "@org.junit.jupiter.api.Test {method} {name}() {{ "
        "org.junit.jupiter.api.Assertions.assertEquals({secret}, {secret} + 1); }}",
        "org.testng": "@org.testng.annotations.Test {method} {name}() {{ "
        "org.testng.Assert.assertEquals({secret}, {secret} + 1); }}",
        "org.junit": "@org.junit.Test {method} {name}() {{ "
        "org.junit.Assert.assertEquals({secret}, {secret} + 1); }}",
        "kotlin.test": "@kotlin.test.Test fun {name}() {{ kotlin.test.assertEquals({secret}, {secret} + 1) }}",
    },
    tests=(
        TestCommand(
            "pom.xml",
            "mvn -B -o test",
            ("target/surefire-reports/*.xml", "**/target/surefire-reports/*.xml"),
        ),
        *(
            TestCommand(
                name,
                "gradle --offline --no-daemon --continue test",
                ("build/test-results/**/*.xml", "**/build/test-results/**/*.xml"),
            )
            for name in ("build.gradle", "build.gradle.kts")
        ),
    ),
)  # fmt: skip
_CPP = LanguageRecord(
    title="C and C++",
    image="cpp",
    suffixes=("c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"),
    test_names=re.compile(r"(?:test_.*|.*_(?:unit)?tests?|.*Tests?|tests?)\.[a-z]+"),
    test_folders=frozenset({"test", "tests", "unittests"}),
    configuration=(
        "CMakeLists.txt", "*.cmake", "CMakePresets.json", "CMakeUserPresets.json", "CMakeCache.txt", "CMakeFiles",
        "Makefile", "makefile", "GNUmakefile", "*.mk", "Makefile.am", "Makefile.in", "configure", "configure.ac",
        "meson.build", "meson_options.txt", "meson.options", "BUILD.bazel", "*.bzl",
        # Frameworks that a repository brings along.
        "gtest", "gmock", "googletest", "googlemock", "catch2", "Catch2", "doctest", "catch.hpp",
        "catch_amalgamated.*", "doctest.h", "doctest.hpp",
    ),
    test_files=(
        "test", "tests", "unittests", "testdata", "test_*.*", "*_test.*", "*_tests.*", "*_unittest.*",
        "*_unittests.*", "*Test.*", "*Tests.*", "test.*", "tests.*",
    ),
    setup="true",
    declares=re.compile(r"(?!)"),
    program="C++",
    version="c++ -dumpversion",
    results=Results.JUNIT,
    control={
        "gtest": "{prefix}TEST({name}, Fails) {{ EXPECT_EQ({secret}, {secret} + 1); }}",
        # Not FAIL: doctest's own report in JUnit's XML does not tell it.
        "catch": '{prefix}TEST_CASE("{name}") {{ {prefix}CHECK({secret} == {secret} + 1); }}',
    },
    tests=(
        TestCommand(
            "CMakeLists.txt",
            'cmake -S . -B "$DGM_BUILD" -DCMAKE_BUILD_TYPE=Debug && cmake --build "$DGM_BUILD" '
            '&& ctest --test-dir "$DGM_BUILD" --timeout 60 --output-junit "$DGM_BUILD/dgm-ctest.xml"',
            ("$DGM_BUILD/dgm-ctest.xml",),
        ),
    ),
)  # fmt: skip
LANGUAGES: Mapping[Language, LanguageRecord] = {
    Language.PYTHON: _PYTHON,
    Language.JAVASCRIPT: _JAVASCRIPT,
    Language.GO: _GO,
    Language.RUST: _RUST,
    Language.JVM: _JVM,
    Language.CPP: _CPP,
}
_BY_SUFFIX = {suffix: language for language, record in LANGUAGES.items() for suffix in record.suffixes}


def language_of(path: str) -> Language | None:
    """Return the language of a file by its suffix; None for what is not a program."""
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return _BY_SUFFIX.get(suffix) if dot else None


@dataclass(frozen=True, slots=True)
class Runner:
    """The meaning of a ``runner`` in the table ``[tests]`` of a task."""

    results: Results
    records: tuple[LanguageRecord, ...] = ()
    """The languages of its tests; none: a program of the task decides."""
    command: tuple[str, ...] = ()
    """Its own command, before the task's options and files; none: the task has one."""
    framework: str = ""
    """Its control test, where the language has several."""

    @property
    def restored(self) -> tuple[str, ...]:
        """Patterns of the files that are put back, where the task names none."""
        return tuple(name for record in self.records for name in record.restored) or _PYTHON.configuration

    @property
    def control(self) -> Mapping[str, str]:
        """Tests that must fail, by framework."""
        return {framework: test for record in self.records for framework, test in record.control.items()}


_JEST_OPTIONS = (
    "--json", "--outputFile={report}", "--ci", "--coverage=false", "--watchman=false", "--colors=false",
    "--maxWorkers=2", "--cacheDirectory=/tmp/dgm-jest-cache",
)  # fmt: skip
_JS = (_JAVASCRIPT,)
RUNNERS: Mapping[str, Runner] = {
    "exit": Runner(Results.EXIT),
    "reward": Runner(Results.REWARD),
    "pytest": Runner(Results.PYTEST, (_PYTHON,)),
    "node": Runner(
        Results.JEST,
        _JS,
        ("--test", "--test-reporter={reporter}", "--test-reporter-destination={report}"),
        "node",
    ),
    "vitest": Runner(
        Results.JEST,
        _JS,
        (
            "/node_modules/.bin/vitest",
            "run",
            "--reporter=json",
            "--outputFile={report}",
            "--coverage.enabled=false",
        ),
        "vitest",
    ),
    "jest": Runner(Results.JEST, _JS, ("/node_modules/.bin/jest", *_JEST_OPTIONS), "jest"),
    "mocha": Runner(
        Results.JEST,
        _JS,
        ("/node_modules/.bin/mocha", "--reporter={reporter}", "--no-parallel", "--no-bail", "--exit"),
        "mocha",
    ),
    "go": Runner(Results.GO_JSON, (_GO,), ("go", "test", "-json", "-vet=off", "-count=1")),
    "command": Runner(Results.CARGO, (_RUST,)),
    "report": Runner(Results.JUNIT, (_CPP, _JVM)),
}
"""``exit`` and ``reward`` run a program of the task; ``command`` and ``report`` a shell command that calls
``cargo test``, or that writes reports in JUnit's XML. The tools of JavaScript are arguments of node; what stands in
braces is a file outside of the workspace."""
BY_COMMAND = ("command", "report")
"""Runners whose tests a shell command builds and runs."""
PLAIN = ("exit", "reward")
"""Runners without names of tests."""

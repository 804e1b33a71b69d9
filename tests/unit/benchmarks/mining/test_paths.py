import pytest

from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.mining.paths import is_code_file, is_test_file, is_test_material

CODE = (
    "src/pkg/core.py", "pkg/testing.py", "pkg/tools/run.py", "pkg/build/env.py", "pkg/tasks.py", "pkg/test.py",
    "src/Lexer.ts", "lib/index.mjs", "cmd/main.go", "spec/schema.go", "internal/contest.go", "src/lib.rs",
    "src/main/java/org/x/Latest.java", "src/main/java/org/x/test/KeySpec.java", "src/main/java/com/example/A.java",
    "core/src/main/kotlin/org/x/TestRunner.kt", "src/commonMain/kotlin/a.kt", "src/main/scala-2.13/A.scala",
    "src/java/org/x/CipherSuite.java", "src/main/java9/org/x/A.java",
    "src/parser.cpp", "include/parser.hpp", "latest.py", "attest.py",
)  # fmt: skip
TESTS = (
    "tests/test_core.py", "tests/helpers.py", "pkg/core_test.py", "app/tests.py", "testing/test_x.py",
    "test/unit/Lexer.test.js", "src/a.spec.tsx", "src/__tests__/a.ts", "spec/a.js", "test.mjs", "pkg/a_test.go",
    "tests/api.rs", "src/tests.rs", "src/test/java/org/x/Helper.java", "src/test/kotlin/ATest.kt",
    "src/integrationTest/java/A.java", "core/src/testFixtures/java/org/x/Some.java", "src/test/java/org/x/main/A.java",
    "src/it/one/src/main/java/A.java", "src/it/one/verify.groovy", "src/jvmTest/kotlin/a.kt",
    "src/spec/groovy/A.groovy", "src/functional-test/groovy/A.groovy", "tests/src/main/java/Base.java",
    "java/org/x/ParserIT.java", "ASpec.scala",
    "tests/test_a.cpp", "src/a_unittest.cc",
)  # fmt: skip
NEITHER = (
    "README.md", "setup.py", "docs/conf.py", "examples/a.py", "scripts/release.py", "tasks.py", "noxfile.py",
    "pkg/_vendor/six.py", "node_modules/a/index.js", "vendor/x/a_test.go", "vite.config.ts", "Gruntfile.js",
    "src/api_pb2.py", "api.pb.go", "lib/marked.min.js", "types/index.d.ts", ".github/a.py", "pkg/_version.py",
    "src/main/java/org/x/package-info.java", "src/main/java/module-info.java", "src/jmh/java/org/x/ATest.java",
    "src/generated/java/org/x/A.java", "benchmarks/src/main/java/A.java", "src/main/resources/test/a.json",
    "Makefile", "pkg/data.json", "app/migrations/0001_a.py", "dist/x.js",
)  # fmt: skip
MATERIAL = (
    "tests/conftest.py",
    "conftest.py",
    "tests/data/a.json",
    "pkg/testdata/in.txt",
    "src/__mocks__/fs.js",
    "src/test/resources/org/x/a.json",
    "core/src/integrationTest/resources/a.txt",
    "src/it/one/pom.xml",
)


@pytest.mark.parametrize("path", CODE)
def test_code_is_no_test(path):
    assert is_code_file(path)
    assert not is_test_material(path)


@pytest.mark.parametrize("path", TESTS)
def test_programs_of_tests_are_told_from_code(path):
    assert is_test_file(path)
    assert is_test_material(path)
    assert not is_code_file(path)


@pytest.mark.parametrize("path", NEITHER)
def test_other_files_are_neither_code_nor_test_files(path):
    assert not is_code_file(path)
    assert not is_test_file(path)
    assert not is_test_material(path)


@pytest.mark.parametrize("path", MATERIAL)
def test_what_tests_read_belongs_to_them_without_being_a_test(path):
    assert is_test_material(path)
    assert not is_test_file(path)
    assert not is_code_file(path)


def test_a_suffix_tells_the_language():
    named = {
        "a.py": "python",
        "b/c.mts": "javascript",
        "d.go": "go",
        "e.rs": "rust",
        "F.kt": "jvm",
        "g.hh": "cpp",
    }
    assert {path: language_of(path) for path in named} == {
        path: Language(name) for path, name in named.items()
    }
    assert [language_of(path) for path in ("py", "a.txt", "a.py/b", "go")] == [None] * 4

"""Named tests of a command of the user's, which builds and runs them: what is restored, and what goes into sandboxes.

The sandbox's side is ``command_runner.py``; the host reads what the command printed (``command_results.py``). Where
the command writes reports in JUnit's XML, the two are ``report_runner.py`` and ``report_results.py``.
"""

from pathlib import Path

COMMAND = "command"
REPORT = "report"
BY_COMMAND = (COMMAND, REPORT)
"""Runners whose tests a command runs: its output, or the reports that it writes, tell the outcomes."""
COMMAND_CONFIGURATION = (
    "Cargo.toml", "Cargo.lock", ".cargo", "build.rs", "rust-toolchain", "rust-toolchain.toml",
)  # fmt: skip
"""Files through which a patch could configure its own tests."""
COMMAND_TEST_FILES = ("test", "tests", "tests.rs", "test.rs", "*_test.*", "*_tests.*", "test_*.*", "testdata")
"""Files and folders that are tests by their names."""
COMMAND_RESTORED = (*COMMAND_CONFIGURATION, *COMMAND_TEST_FILES)
_HERE = Path(__file__).parent
COMMAND_PROGRAMS = tuple(
    _HERE / f"{each}.py" for each in ("command_runner", "command_watcher", "tool_runner", "hidden_parts")
)
"""Files that run in the sandbox."""
CPP_CONFIGURATION = (
    "CMakeLists.txt", "*.cmake", "CMakePresets.json", "CMakeUserPresets.json", "CMakeCache.txt", "CMakeFiles",
    "Makefile", "makefile", "GNUmakefile", "*.mk", "Makefile.am", "Makefile.in", "configure", "configure.ac",
    "meson.build", "meson_options.txt", "meson.options", "BUILD.bazel", "*.bzl",
)  # fmt: skip
CPP_FRAMEWORKS = (
    "gtest", "gmock", "googletest", "googlemock", "catch2", "Catch2", "doctest", "catch.hpp", "catch_amalgamated.*",
    "doctest.h", "doctest.hpp",
)  # fmt: skip
"""Frameworks that a repository brings along, by the names of their files and folders."""
CPP_TEST_FILES = (
    "test", "tests", "unittests", "testdata", "test_*.*", "*_test.*", "*_tests.*", "*_unittest.*", "*_unittests.*",
    "*Test.*", "*Tests.*", "test.*", "tests.*",
)  # fmt: skip
CPP_RESTORED = (*CPP_CONFIGURATION, *CPP_FRAMEWORKS, *CPP_TEST_FILES)
JVM_CONFIGURATION = (
    "pom.xml", ".mvn", "mvnw", "*.gradle", "*.gradle.kts", "gradle.properties", "gradle.lockfile", "gradle/*",
    "gradlew", "buildSrc", "build-logic", "build.xml", "ivy.xml", "*.sbt", "project/*", "testng.xml",
    # Found on the class path by their names: what listens to tests, and what changes them while they are compiled.
    "junit-platform.properties", "org.junit.*", "org.testng.*", "org.spockframework.*", "mockito-extensions",
    "javax.annotation.processing.Processor", "com.sun.source.util.Plugin", "org.codehaus.groovy.*", "kotlin.test.*",
    "org.assertj.*", "org.mockito.*", "io.kotest.*", "SpockConfig.groovy",
)  # fmt: skip
JVM_TEST_FILES = (
    "src/test", "*/src/test", "src/*Test", "*/src/*Test", "src/*-test", "*/src/*-test", "src/it", "*/src/it",
    "src/testFixtures", "*/src/testFixtures", "test/*", "tests/*", "*/test/java", "*Test.java", "*Tests.java",
    "*TestCase.java", "Test[A-Z]*.java", "*Test.kt", "*Tests.kt", "*Test.groovy", "*Spec.groovy", "*Test.scala",
    "*Spec.scala", "*Suite.scala",
)  # fmt: skip
JVM_RESTORED = (*JVM_CONFIGURATION, *JVM_TEST_FILES)
REPORT_RESTORED = (*CPP_RESTORED, *JVM_RESTORED)
REPORT_PROGRAMS = (
    *COMMAND_PROGRAMS,
    *(_HERE / f"{each}.py" for each in ("report_runner", "cpp_controls", "jvm_controls")),
)

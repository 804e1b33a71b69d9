"""A suite mined out of a small repository in Java by reports in JUnit's XML."""

import asyncio
from pathlib import Path

import pytest

from dgm.benchmarks.verification import verify
from dgm.domain import Split
from tests.support.each_engine import find_engine, mine_steps

JARS = [
    f"/usr/share/java/{name}.jar"
    for name in (
        *(f"junit-platform-{each}" for each in ("commons", "console", "engine", "launcher", "reporting")),
        *(f"junit-{each}" for each in ("jupiter-api", "jupiter-engine", "jupiter-params", "vintage-engine")),
        *("junit4", "hamcrest", "opentest4j", "apiguardian-api", "picocli", "univocity-parsers"),
    )
]
pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
TESTS = """\
package org.x;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HalfTest extends Half {
    @Test void halves() {
        // A remark.
        assertEquals(WANTED, half(4));
    }

    @Test void nothing() { Assertions.assertEquals(0, half(0)); }

    @ParameterizedTest @ValueSource(ints = {0, 8})
    void each(int number) { assertEquals(number * WANTED / 4, half(number)); }

    @Nested class Deep {
        @Test void deep() { assertTrue(half(8) == 2 * WANTED); }
    }
}
"""
OLD = """\
package org.x;

import org.junit.*;

public class OldTest {
    @Test public void old() {
        Assert.assertEquals(WANTED, Half.half(4));
    }

    @Test public void none() { Assert.assertEquals(0, Half.half(0)); }
}
"""
CODE = """\
package org.x;

public class Half {
    public static int half(int number) { return number / DIVISOR; }
}
"""
COMMAND = (
    'mkdir -p "$DGM_BUILD/classes"; cp -r src/main/resources/. "$DGM_BUILD/classes"; '
    f'javac -d "$DGM_BUILD/classes" -cp {":".join(JARS)} $(find src -name "*.java") && '
    f'java -cp "$DGM_BUILD/classes:{":".join(JARS)}" org.junit.platform.console.ConsoleLauncher '
    '--disable-banner --scan-classpath "$DGM_BUILD/classes" --reports-dir "$DGM_BUILD/reports"'
)
REPORTS = (
    "--set",
    'mining.reports=["$DGM_BUILD/reports/*.xml", "**/target/surefire-reports/*.xml"]',
)


def files(divisor, wanted):
    code = CODE.replace("DIVISOR", divisor)
    tests = {"HalfTest": TESTS, "OldTest": OLD}
    return {
        "src/main/java/org/x/Half.java": code,
        **{
            f"src/test/java/org/x/{name}.java": text.replace("WANTED", wanted) for name, text in tests.items()
        },
    }


BEGIN = {"LICENSE": "Permission is hereby granted, free of charge\n", "src/main/resources/x.txt": "x\n"}
RIGHT = files("2", "2")
STEPS = (
    ("begin", {**BEGIN, **files("4", "1")}),
    ("Halve by two", RIGHT),
    ("Explain", {name: f"// Why.\n{text}" for name, text in RIGHT.items()}),
)


def test_the_tests_of_junit_are_those_of_their_classes(tmp_path, engine_name):
    engine = find_engine(engine_name, "javac")
    if engine_name == "bubblewrap" and not all(Path(jar).exists() for jar in JARS):
        pytest.skip("NOT RUN with bubblewrap: JUnit 4 and JUnit 5 are not installed for all")
    suite, report = mine_steps(tmp_path, STEPS, engine, "--test", COMMAND, *REPORTS)
    assert report["tasks"] == {"history": 1}
    task = suite.tasks(Split.SEARCH)[0]
    tests = suite.record(task.id).tests
    assert sorted(tests.fail_to_pass) == [
        "src/test/java/org/x/HalfTest.java::Deep.deep()",
        "src/test/java/org/x/HalfTest.java::each(int)[2]",
        "src/test/java/org/x/HalfTest.java::halves()",
        "src/test/java/org/x/OldTest.java::old",
    ]
    assert "assertEquals(2, half(4));" in task.prompt
    assert asyncio.run(verify(suite, task.id, {"dgm.run": "test"})) == []

"""The failing assertion of a test on the JVM, as statements tell it."""

import pytest

from dgm.benchmarks.mining.jvm_symptoms import find_jvm_symptom
from dgm.benchmarks.mining.leaks import Evidence
from dgm.benchmarks.mining.statements import template_statement

JAVA = """\
package org.x;

import org.junit.jupiter.api.*;

/** reads() { } */
class ParserTest {
    private Parser parser = new Parser();

    @Test
    void reads() {
        // why "}
        for (String text : List.of("a", "b")) {
            Node node = parser.read(text); // and why
            assertThat(node)
                .isEqualTo(new Node("}"));
            assertNull(node.next());
        }
    }

    @Test void once() { assertEquals(1, f()); }

    @Test
    public void refuses() throws Exception {
        try {
            parser.read("(");
            fail("no error");
        } catch (ParseException e) {
            assertEquals(1, e.at());
        }
        parser.close();
    }

    @Test
    void calls() {
        Assertions.assertThrows(ParseException.class, () -> {
            parser.read(null);
        });
        reads();
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", ")"})
    void each(String text) {
        check(text);
    }

    @MethodSource("cases") @ParameterizedTest void some(String text) { check(text); }

    static Stream<String> cases() {
        return Stream.of("a");
    }

    @Nested class Inner {
        @Test void reads() { inner(); }
    }
}
"""
KOTLIN = """\
package org.x

class ParserTest {
    @Test
    fun `reads a (b)`() = runTest {
        val node = parser
            .read("a")
        assertFailsWith<ParseException> {
            node.next()
        }
        done()
    }

    @Test fun short() = assertEquals(1, f("{"))
}
"""
SPOCK = """\
package org.x

class ParserSpec extends Specification {
    def "reads #text as #n"() {
        when:
        def node = parser.read(text)
        then:
        node.value == n
        node.next() == null

        where:
        text | n
        'a'  | 1
    }
}
"""
SCALA = """\
package org.x

class ParserSpec extends AnyFlatSpec {
  "A parser" should "read a" in {
    val node = parser.read("a")
    assert(node.value == 1)
    other()
  }
}
"""
PLACE = "src/test/java/org/x/ParserTest.java"


def trace(*parts, error="java.lang.AssertionError: no", file="ParserTest.java", text=JAVA):
    """Return a failure whose stack names the lines that hold some parts of the code."""
    lines = [next(n for n, row in enumerate(text.split("\n"), 1) if part in row) for part in parts]
    inner = "\tat org.x.Parser.read(Parser.java:3)\n"
    return f"{error}\n{inner}" + "".join(f"\tat org.x.ParserTest.m({file}:{line})\n" for line in lines)


def code_of(name, *parts, place=PLACE, text=JAVA):
    said = trace(*parts, file=place.rpartition("/")[2], text=text)
    return find_jvm_symptom(said, f"{place}::{name}", [text]).code


def test_code_ends_with_the_statement_that_failed_and_open_blocks_are_closed():
    assert code_of("reads()", "assertThat(") == (
        'for (String text : List.of("a", "b")) {\n    Node node = parser.read(text);\n    assertThat(node)\n'
        '        .isEqualTo(new Node("}"));\n}'
    )


def test_what_a_failing_block_catches_is_told():
    assert code_of("refuses", "fail(") == (
        'try {\n    parser.read("(");\n    fail("no error");\n} catch (ParseException e) {\n'
        "    assertEquals(1, e.at());\n}"
    )


@pytest.mark.parametrize(
    ("name", "lines", "code"),
    [
        ("once", ("once",), "assertEquals(1, f());"),
        (
            "calls",
            ("read(null)", "assertThrows"),
            "Assertions.assertThrows(ParseException.class, () -> {\n    parser.read(null);\n});",
        ),
        ("Inner.reads()", ("inner",), "inner();"),
        (
            "each(String)[1]",
            (),
            '@ValueSource(strings = {"a", ")"})\nvoid example(String text) {\n    check(text);\n}',
        ),
        (
            "some{String}[1]",
            ("void some",),
            '@MethodSource("cases")\nstatic Stream<String> cases() {\n    return Stream.of("a");\n}\n\nvoid example',
        ),
        (
            "[1] a title that names nothing",
            ("    check(text)",),
            '@ValueSource(strings = {"a", ")"})\nvoid example',
        ),
    ],
)
def test_tests_in_java_are_found_by_name_or_by_the_stack(name, lines, code):
    assert code_of(name, *lines).startswith(code)


@pytest.mark.parametrize(
    ("name", "part", "code"),
    [
        (
            "reads a (b)()",
            "assertFailsWith",
            'val node = parser\n    .read("a")\nassertFailsWith<ParseException> {\n    node.next()\n}',
        ),
        ("reads a (b)", ".read(", 'val node = parser\n    .read("a")'),
        ("short()", "short", 'assertEquals(1, f("{"))'),
    ],
)
def test_tests_in_kotlin_are_found(name, part, code):
    assert code_of(name, part, place="src/test/kotlin/org/x/ParserTest.kt", text=KOTLIN) == code


@pytest.mark.parametrize("name", ["reads a as 1", "reads #text as #n [text: a, n: 1, #0]"])
def test_a_feature_of_spock_is_told_with_its_cases(name):
    found = code_of(name, "node.value", place="src/test/groovy/org/x/ParserSpec.groovy", text=SPOCK)
    assert found == (
        "when:\ndef node = parser.read(text)\nthen:\nnode.value == n\n\nwhere:\ntext | n\n'a'  | 1"
    )


def test_a_title_of_scalatest_is_the_end_of_the_reported_name():
    found = code_of(
        "A parser should read a", "assert(", place="src/test/scala/org/x/ParserSpec.scala", text=SCALA
    )
    assert found == 'val node = parser.read("a")\nassert(node.value == 1)'


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            "org.opentest4j.AssertionFailedError: \nexpected: 1\n but was: 2",
            "AssertionFailedError:\nexpected: 1\n but was: 2",
        ),
        (
            "org.x.ParseException: at org.x.Node@1b2c3d (Node@1b2c3d)",
            "org.x.ParseException: at org.x.Node (Node)",
        ),
        (
            "java.lang.RuntimeException: a\nCaused by: java.lang.Error: b",
            "RuntimeException: a\nCaused by: Error: b",
        ),
        ("x.Error: was\n\tat org.x.Parser.rea\n[...]\nser.java:3)", "x.Error: was"),
        ("java.io.IOException: /tmp/junit-123456/a.txt", "java.io.IOException: a.txt"),
    ],
)
def test_an_error_is_told_without_stack_and_places(said, error):
    assert find_jvm_symptom(trace(error=said), f"{PLACE}::once", [JAVA]).error == error


def test_of_long_values_the_part_that_differs_is_told():
    same, more = "s" * 400, "m" * 400
    said = trace(error=f"x.AssertionFailedError: why ==> expected: <{same}a{more}> but was: <{same}b{more}>")
    first, second = find_jvm_symptom(said, f"{PLACE}::once", [JAVA]).error.split("\n")
    assert first == f"x.AssertionFailedError: why ==> expected: <…{'s' * 75}a{'m' * 224}…>"
    assert second == f" but was: <…{'s' * 75}b{'m' * 224}…>"


def test_a_test_is_that_of_its_own_class():
    other = JAVA.replace("ParserTest", "OtherTest").replace("f()", "g()")
    elsewhere = JAVA.replace("org.x", "org.y").replace("f()", "h()")
    said = trace("once")
    assert find_jvm_symptom(said, f"{PLACE}::once", [other, JAVA, elsewhere]).code == "assertEquals(1, f());"


@pytest.mark.parametrize(
    ("said", "name", "text", "why"),
    [
        ("", "once", JAVA, "no error"),
        ("wrong", "other", JAVA, "no test file shows the code"),
        ("wrong", "once", JAVA.replace("f()", "\n+ 1" * 61), "more than 60 lines"),
        ("wrong", "some", JAVA.replace('of("a")', "of(" + "\n" * 40 + ")"), "too long to be told"),
        ("wrong", "some", JAVA.replace('"cases"', '"org.y.Cases#cases"'), "shows the values"),
    ],
)
def test_what_cannot_be_told_is_refused(said, name, text, why):
    with pytest.raises(ValueError, match=why):
        find_jvm_symptom(said, f"{PLACE}::{name}", [text])


@pytest.mark.parametrize(
    ("said", "title", "wanted"),
    [
        (
            "org.opentest4j.AssertionFailedError: expected: <1> but was: <2>",
            "`f`: another result than",
            "The assertion",
        ),
        (
            "org.opentest4j.AssertionFailedError: Expected org.x.E to be thrown, but nothing was thrown.",
            "`f`: no error",
            "That error",
        ),
        ("java.lang.AssertionError: Expected exception: org.x.E", "`f`: no error where", "That error"),
        ("org.x.Outer$ParseException: no", "`f`: ends in ParseException", "It should run to its end"),
        (
            "/x/ParserTest.java:[3,5] cannot find symbol\n  symbol: method f()",
            "`f`: does not compile",
            "It should run",
        ),
    ],
)
def test_a_statement_says_how_a_test_ends_and_what_is_wanted(said, title, wanted):
    test = f"{PLACE}::once"
    text = template_statement(Evidence("", "", "", said, (test,), frozenset(), ((test, said),), (JAVA,)))
    assert text.startswith(f"# {title}")
    assert f"\n\n{wanted}" in text
    assert "/x/" not in text

"""Files of a patch that take the place of what tests on the JVM stand on."""

import pytest

from dgm.benchmarks.jvm_shadows import find_replaced, find_shadow

STAR = """\
package org.x;
import static org.junit.Assert.*;
import org.junit.*;
import java.util.List;
public class ATest {
    @Test public void reads() { Assert.assertEquals(List.of(Integer.valueOf(2)), read("Parser")); }
    class Own {}
}
"""
PARSER_OF = "package org.x;\nclass Parser extends Base { static int half(int a) { return a; } }\n"
INHERITING = (
    "package org.x;\nimport static org.junit.Assert.*;\n"
    "class BTest extends Parser { void b() { int count = 2; assertEquals(count, half(4)); } }\n"
)
KOTLIN = (
    "package org.x\nimport kotlin.test.*\nclass CTest { @Test fun reads() { assertEquals(2, half(4)) } }\n"
)
TESTS = {"test/ATest.java": STAR, "test/BTest.java": INHERITING, "test/CTest.kt": KOTLIN}
PARSER = "package org.x;\npublic class Parser { static int half(int a) { return a; } }\n"
START = {"src/Parser.java": PARSER}


@pytest.mark.parametrize(
    ("path", "text", "shadowed"),
    [
        ("src/main/java/org/junit/Assert.java", "class X {}", "org.junit"),
        ("src/main/java/X.java", "package org.junit.jupiter.api;\nclass X {}", "org.junit"),
        ("src/main/java/X.java", "package org.j\\u0075nit;\nclass X {}", "org.junit"),
        ("src/main/java/X.java", "package org . /* it */ junit;\nclass X {}", "org.junit"),
        ("src/main/java/X.java", "package org.ju\u00adnit;\nclass X {}", "org.junit"),
        ("src/main/java/X.kt", "package kotlin.test", "kotlin"),
        ("src/main/java/X.kt", '@file:JvmName("X") package org\n.`junit`', "org.junit"),
        ("src/main/java/X.kt", '/* " /* */ " */ package kotlin.test //"', "kotlin"),
        ("src/main/resources/org/assertj/core/api/Assertions.class", "", "org.assertj"),
        ("src/main/java/org/x/Parser.java", "package org.x;\n// class Assert\npublic class Parser {}", ""),
        ("src/main/java/org/junitx/Parser.java", "package org.junitx;\npublic class Parser {}", ""),
        ("README.md", "package org.junit", ""),
    ],
)
def test_classes_in_the_place_of_a_frameworks_are_seen(path, text, shadowed):
    assert find_shadow(path, text) == shadowed


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("src/Assert.java", "package org.x;\npublic class Assert {}", "Assert"),
        ("src/Assert.java", "package org.x;\npublic class Ass\\u0065rt {}", "Assert"),
        ("src/Test.java", "package org.x;\n@interface Test {}", "Test"),
        ("src/Integer.java", "package org.x;\nclass Integer {}", "Integer"),
        ("src/Other.kt", "package org.x\nfun assertEquals(a: String, b: String) {}", "assertEquals"),
        (
            "src/Parser.java",
            PARSER.replace("{ static", "{ static void assertEquals(int a, int b) {} static"),
            "assertEquals",
        ),
    ],
)
def test_names_that_tests_take_from_elsewhere_are_not_given_by_a_patch(path, text, name):
    assert f"{path} gives {name} in test/" in find_replaced(START, {**START, path: text}, TESTS)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/Assert.java", "package org.x.tools;\npublic class Assert {}"),
        ("src/List.java", "package org.x;\nclass List {}"),
        ("src/Reader.java", "package org.x;\nclass Reader { class Integer {} }"),
        ("src/Own.java", "package org.x;\nclass Own {}"),
        ("src/Other.java", "package org.x;\nclass Other { void assertEquals(int a, int b) {} }"),
        ("src/Other.kt", "package org.x\nfun count() = 1\n"),
        ("src/Parser.java", PARSER.replace("return a", "return a / 2")),
        ("src/Parser.java", PARSER.replace("{ static", "{ void parse() { assertEquals(1, 2); } static")),
    ],
)
def test_classes_that_no_test_meets_are_welcome(path, text):
    assert find_replaced(START, {**START, path: text}, TESTS) == ""


def test_what_is_there_already_is_no_shadow():
    start = {**START, "src/Assert.java": "package org.x;\nclass Assert {}"}
    assert (
        find_replaced(start, {**start, "src/Assert.java": "package org.x;\nclass Assert { int a; }"}, TESTS)
        == ""
    )


def test_an_assertion_may_be_inherited_by_several_classes():
    base = "package org.x;\nclass Base { static void assertEquals(int a, int b) {} }\n"
    replaced = find_replaced(START, {"src/Parser.java": PARSER_OF, "src/Base.java": base}, TESTS)
    assert replaced == "src/Base.java gives assertEquals in test/BTest.java another meaning"

"""Changed test files, run here on functions of our own: what must fail fails, the rest passes as before."""

import ast
import random
import re
import unittest

import pytest
from dgm.benchmarks.perturbation import perturb, perturb_all
from dgm.benchmarks.perturbation_values import other_value

HEAD = "import unittest\nfrom random import Random\n\n\nclass Grams(unittest.TestCase):\n"


def suite_of(*bodies: str) -> bytes:
    """A test class with a method a body; ``same`` gives back what it gets."""
    methods = (
        f"    def test_number_{n}(self):\n" + "".join(f"        {line}\n" for line in body.split("\n"))
        for n, body in enumerate(bodies)
    )
    return (HEAD + "\n".join(methods)).encode()


def outcomes(source: bytes) -> dict[str, str]:
    """What becomes of each test of a file, by Class.method."""
    names = {"same": lambda value: value, "__name__": "case"}
    exec(compile(source, "case", "exec"), names)
    found = {}
    for kind in [
        each for each in names.values() if isinstance(each, type) and issubclass(each, unittest.TestCase)
    ]:
        for method in unittest.defaultTestLoader.getTestCaseNames(kind):
            result = unittest.TestResult()
            kind(method).run(result)
            bad = result.failures or result.errors
            found[f"{kind.__name__}.{method}"] = (
                "failed" if bad else "skipped" if result.skipped else "passed"
            )
    return found


CERTAIN = [
    "self.assertEqual(same(2000), 2000)",
    "self.assertEqual(2000, same(2000), 'message')",
    "self.assertEqual(same(-3.5), -3.5)",
    "self.assertEqual(same('abc'), 'abc')",
    "self.assertEqual(same(b'two words'), b'two words')",
    r"self.assertEqual(same('a\n'), 'a\n')",
    "self.assertEqual(same('--'), '--')",
    "self.assertEqual(same(''), '')",
    "self.assertEqual(same('ab'), ('a'  # c\n                 'b'))",
    "self.assertEqual(same([]), [])",
    "self.assertEqual(same({}), {})",
    "self.assertEqual(same(()), ())",
    "self.assertEqual(same(None), None)",
    "self.assertIs(same(True), True)",
    "self.assertEqual(same([1, (2, 'x')]), [1, (2, 'x')])",
    "self.assertEqual(same({'k': 1}), {'k': 1})",
    "self.assertEqual(same({1, 2}), {1, 2})",
    "n = 3\nself.assertEqual(same([n, 4]), [n, 4])",
    "self.assertListEqual(same([1]), [1])",
    "self.assertCountEqual(same(['a', 'b']), ['b', 'a'])",
    "self.assertAlmostEqual(same(0.3), 0.3)",
    "self.assertAlmostEqual(same(20.3), 20, delta=2)",
    "self.assertAlmostEqual(same(20.34), 20.3, places=1)",
    "assert same(17) == 17",
    "assert 17 == same(17), 'why'",
    "with self.subTest(n=1):\n    self.assertEqual(same(8), 8)",
    "for n in (1, 2, 3):\n    self.assertEqual(same(n) - n, 0)",
    "for n, more in ((1, 2), (3, 4)):\n    with self.subTest(more=more):\n        self.assertEqual(same(n) + 1, more)",
    "wanted = [1, 2]\nself.assertEqual(same([1, 2]), wanted)",
    "try:\n    self.assertEqual(same(5), 5)\nfinally:\n    same(1)",
    "self.assertEqual(same(0x1F), 0x1F)",
    "self.assertEqual(same(1_000), 1_000)",
    "self.assertEqual(same(1e3), 1e3)",
    # Tests without an expected value: the opposite.
    "self.assertTrue(same(1))",
    "self.assertFalse(same(0))",
    "self.assertIn(1, same([1]))",
    "self.assertNotIn(2, same([1]))",
    "self.assertIsNone(same(None))",
    "self.assertIsNotNone(same(1))",
    "self.assertGreater(same(2), same(1))",
    "self.assertLessEqual(same(2), same(2))",
    "self.assertIsInstance(same(2), int)",
    "self.assertEqual(same(2), same(2))",
    "self.assertNotEqual(same(2), same(3))",
    "self.assertRegex(same('abc'), 'b')",
    "assert same(1)",
    "assert not same(0)",
    "assert same(1) in [1]",
    "assert same(1) not in [2]",
    "assert same(1) < 2",
    "with self.assertRaises(ZeroDivisionError):\n    same(1 / 0)",
    "self.assertRaises(KeyError, {}.__getitem__, same(1))",
    "with self.assertRaises(same(ValueError)):\n    int('x')\nself.assertEqual(same(3), 3)",
]  # fmt: skip


@pytest.mark.parametrize("body", CERTAIN)
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_changed_test_surely_fails(body, seed):
    source = suite_of(body)
    assert outcomes(source) == {"Grams.test_number_0": "passed"}
    done, unchanged = sorted(
        (perturb(source, seed, part) for part in (0, 1)), key=lambda each: not each.changed
    )
    assert (done.changed, unchanged.changed) == (("Grams.test_number_0",), ())
    for each in (done, unchanged, perturb(source, seed, None)):
        found = outcomes(each.source)
        assert len(found) == 2
        assert {name for name, outcome in found.items() if outcome == "failed"} == {
            *each.changed,
            *each.failing,
        }


def changed_in(source, seed="1", **lists):
    """The tests that one of the two parts changes."""
    parts = [each for part in (0, 1) if (each := perturb(source, seed, part, **lists))]
    return {name for each in parts for name in each.changed}


HELPER = (
    HEAD
    + """\
    def check(self, value, expected):
        self.assertEqual(same(value), expected)
        self.assertEqual(expected, same(value))

    def test_one(self):
        self.check(2000, 2000)

    def test_another(self):
        self.check("word", "word")
"""
)


def test_values_that_a_helper_compares_are_changed():
    assert changed_in(HELPER.encode()) == {"Grams.test_one", "Grams.test_another"}
    for part in (None, 0, 1):
        done = perturb(HELPER.encode(), "1", part)
        found = outcomes(done.source)
        assert {name for name, outcome in found.items() if outcome == "failed"} == {
            *done.changed,
            *done.failing,
        }


def test_values_that_a_helper_does_more_with_are_left_alone():
    assert (
        changed_in(HELPER.replace("same(value), expected", "same(value), same(expected)").encode()) == set()
    )


UNSURE = [
    "if same(0):\n    self.assertEqual(same(1), 2)",
    "if same(1):\n    return\nself.assertEqual(same(1), 2)",
    "for n in same([]):\n    self.assertEqual(same(1), 2)",
    "for n in (1, 2):\n    if n:\n        continue\n    self.assertEqual(same(1), 2)",
    "def inner():\n    self.assertEqual(same(1), 2)",
    "try:\n    self.assertEqual(same(1), 2)\nexcept AssertionError:\n    pass",
    "import contextlib\nwith contextlib.suppress(AssertionError):\n    self.assertEqual(same(1), 2)",
    "with self.assertRaises(same(AssertionError)):\n    self.assertEqual(same(1), 2)",
    "self.assertCountEqual(same('ab'), 'ab') if same(0) else None",
    "yield self.assertEqual(same(1), 2)",
]


@pytest.mark.parametrize("body", UNSURE)
def test_what_may_not_be_executed_is_left_alone(body):
    assert changed_in(suite_of(body)) == set()


@pytest.mark.parametrize(
    "head",
    [
        "    @unittest.expectedFailure\n",
        "    @unittest.skip('why')\n",
        "    @unittest.skipIf(same(1), 'why')\n",
    ],
)
def test_marked_tests_are_left_alone(head):
    source = HEAD.encode() + f"{head}    def test_a(self):\n        self.assertEqual(same(1), 1)\n".encode()
    assert changed_in(source) == set()


def test_a_method_that_is_there_twice_is_left_alone():
    method = "    def test_a(self):\n        self.assertEqual(same(1), 1)\n\n"
    assert perturb((HEAD + method + method).encode(), "1", 0) is None


def test_async_tests_count_where_they_are_awaited():
    body = "    async def test_a(self):\n        self.assertEqual(same(17), 17)\n"
    assert changed_in((HEAD + body).encode()) == set()
    awaited = HEAD.replace("TestCase", "IsolatedAsyncioTestCase") + body
    assert changed_in(awaited.encode()) == {"Grams.test_a"}


def test_inherited_tests_are_named_for_each_class():
    source = suite_of("self.assertEqual(same(17), 17)") + b"\n\nclass More(Grams):\n    pass\n"
    parts = [perturb(source, "1", part, ["More.test_number_0"]) for part in (0, 1)]
    done = next(each for each in parts if each.changed)
    assert done.changed == ("Grams.test_number_0", "More.test_number_0")
    assert all(name.startswith("More.") for name in done.added)
    found = outcomes(done.source)
    assert {found[name] for name in done.changed} == {"failed"}


MANY = suite_of(*[f"self.assertEqual(same({n}), {n})" for n in range(100, 110)])
NAMES = [f"Grams.test_number_{n}" for n in range(10)]


def test_each_part_changes_another_half_and_the_other_tests_pass():
    parts = [perturb(MANY, "7", part) for part in (0, 1)]
    assert [len(each.changed) for each in parts] == [5, 5]
    assert {*parts[0].changed, *parts[1].changed} == {*NAMES}
    for each in parts:
        failed = {name for name, outcome in outcomes(each.source).items() if outcome == "failed"}
        assert failed == {*each.changed, *each.failing}


def test_seeds_choose_different_tests_and_values():
    assert len({perturb(MANY, str(seed), 0).source for seed in range(20)}) == 20
    assert perturb(MANY, "1", 0) == perturb(MANY, "1", 0)


def test_tests_that_pass_without_a_fix_are_left_alone():
    assert changed_in(MANY, first=NAMES[2:4], rest=NAMES[4:]) == {*NAMES[2:4]}
    for part in (None, 0, 1):
        done = perturb(MANY, "3", part, first=NAMES[2:4], rest=NAMES[4:])
        assert {*done.passing.values()} <= {*NAMES[2:4]}


def test_only_listed_tests_are_changed():
    assert changed_in(MANY, rest=NAMES[2:4]) == {*NAMES[2:4]}


def test_nothing_tells_the_run_that_decides_from_another():
    """Of one test, twin and test hold the true value and the changed one equally often, in any order of the file."""
    source = suite_of("self.assertEqual(same(2000), 2000)")
    files = [perturb(source, str(seed), part) for seed in range(300) for part in (None, 0, 1)]
    both = [each for each in files if len(set(values_of(each.source))) == 2]
    assert 0.6 < len(both) / len(files) < 0.8
    assert {len(values_of(each.source)) for each in files} == {2}
    first = sum(values_of(each.source)[0] == 2000 for each in both) / len(both)
    # A third of the files has the test changed, and its twin stands before it.
    assert 0.25 < first < 0.45
    kinds = {(bool(each.changed), len(set(values_of(each.source)))) for each in files}
    assert len(kinds) == 4


def values_of(source):
    """What each assertion of a file expects, in the order of the file."""
    return [int(found) for found in re.findall(rb"same\(2000\), (\d+)", source)]


def test_only_bytes_of_values_change():
    body = "self.assertEqual(same('ä'), 'ä')  # a comment\nself.assertEqual(same(17), 17)  # ö"
    source = suite_of(body).replace(b"\n", b"\r\n")
    done = next(each.source for part in (0, 1) if (each := perturb(source, "2", part)).changed)
    assert len({*source.splitlines(True)} - {*done.splitlines(True)}) <= 1
    # A twin: a head, two lines, and a blank one.
    assert len(done.splitlines()) - len(source.splitlines()) == 4


def test_twins_are_named_from_the_file():
    words = {word for name in NAMES for word in name.split("_")}
    source = MANY.replace(b"test_number_1", b"test_grams_of_many")
    names = {twin.rpartition(".")[2] for seed in range(10) for twin in perturb(source, str(seed), None).added}
    assert names
    assert all(name.startswith("test_") for name in names)
    assert not names & {*NAMES, "test_"}
    assert {word for name in names for word in name.split("_")} - words


@pytest.mark.parametrize(
    "text",
    [
        "2000",
        "0",
        "7",
        "0.5",
        "3.14",
        "1e9",
        "0xff",
        "'abc'",
        "'Two Words'",
        "b'raw'",
        "r'\\d+'",
        "'''a\nb'''",
        "''",
        "'é'",
    ],
)
def test_another_value_is_of_the_same_type_and_shape(text):
    old = ast.literal_eval(text)
    for seed in range(30):
        new = other_value(text, random.Random(seed), {repr(old)})
        value = ast.literal_eval(new)
        assert type(value) is type(old)
        assert value != old
        assert abs(len(new) - len(text)) <= 7
        if len(str(old)) > 1 and old != "":
            assert len(new) == len(text) or text in ("'é'", r"r'\d+'")


def test_values_of_the_file_do_not_come_up_again():
    taken = {str(n) for n in range(10)}
    assert int(other_value("3", random.Random(1), taken)) > 9


@pytest.mark.parametrize(
    "source", [b"def broken(:\n", b"\xff\xfe", b"", b"VALUE = 3\n", b"(" * 3000 + b")" * 3000]
)
def test_a_file_without_tests_is_none(source):
    assert perturb(source, "1", 0) is None


def test_pytest_functions_are_changed_too():
    assert changed_in(b"def test_a():\n    assert same('word') == 'word'\n") == {"test_a"}


def test_everything_that_is_compared_is_changed():
    source = b"""import pytest
CASES = [(1, 100), (2, 200)]

@pytest.mark.parametrize(("n", "wanted"), [(3, 300)])
def test_a(n, wanted):
    assert f(n) == wanted

def check():
    return told == str([2000, 5000]) and f(77) == "word"

def test_b():
    assert f(1)
"""
    done = perturb_all(source, "1").source
    for old in (b"100)", b"200)", b"300)", b"2000", b"5000", b'"word"'):
        assert old not in done
    assert b"f(77)" in done
    assert b"assert not f(1)" in done


def test_a_script_that_compares_nothing_has_nothing_to_change():
    assert perturb_all(b"import os\nprint('done')\n", "1") is None

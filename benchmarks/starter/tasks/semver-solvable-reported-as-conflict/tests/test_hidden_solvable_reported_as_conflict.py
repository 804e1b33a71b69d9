import unittest

from semver import Conflict, Index, Range, resolve


def picked(index, **roots):
    return {name: str(version) for name, version in resolve(index, roots).items()}


class GoingBack(unittest.TestCase):
    def test_two_steps_back(self):
        index = Index()
        index.add("base", "1.0.0")
        index.add("base", "2.0.0")
        index.add("base", "3.0.0")
        index.add("top", "1.0.0", {"base": "1.x"})
        index.add("top", "2.0.0", {"base": "2.x"})
        index.add("top", "3.0.0", {"base": "3.x"})
        self.assertEqual(picked(index, top="*", base="1.x"), {"top": "1.0.0", "base": "1.0.0"})

    def test_behind_another_package(self):
        index = Index()
        index.add("c", "1.0.0")
        index.add("c", "2.0.0")
        index.add("a", "1.0.0", {"c": ">=1"})
        index.add("a", "2.0.0", {"c": ">=2"})
        index.add("b", "1.0.0", {"c": "<2.0.0"})
        self.assertEqual(picked(index, a="*", b="*"), {"a": "1.0.0", "b": "1.0.0", "c": "1.0.0"})

    def test_requirement_of_a_dropped_release_is_forgotten(self):
        index = Index()
        index.add("extra", "1.0.0")
        index.add("low", "1.0.0")
        index.add("tool", "1.0.0", {"low": "1.x"})
        index.add("tool", "1.1.0", {"extra": "1.x", "low": "2.x"})
        self.assertEqual(picked(index, tool="*"), {"tool": "1.0.0", "low": "1.0.0"})

    def test_real_conflict(self):
        index = Index()
        index.add("c", "1.0.0")
        index.add("a", "1.0.0", {"c": "2.x"})
        with self.assertRaises(Conflict):
            resolve(index, {"a": "*"})

    def test_index_is_left_alone(self):
        index = Index()
        index.add("c", "1.0.0")
        index.add("c", "1.1.0")
        index.add("a", "1.0.0", {"c": "1.x"})
        first = picked(index, a="*", c="1.0.0")
        self.assertEqual(first, {"a": "1.0.0", "c": "1.0.0"})
        self.assertEqual(picked(index, a="*"), {"a": "1.0.0", "c": "1.1.0"})
        self.assertEqual(str(index.requirements("a", index.versions("a")[0])["c"]), str(Range.parse("1.x")))

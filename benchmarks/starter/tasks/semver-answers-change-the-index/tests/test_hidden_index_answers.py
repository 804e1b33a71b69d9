import unittest

from semver import Index, Range, Version, resolve

ONE = Version(1, 0, 0)


class Answers(unittest.TestCase):
    def setUp(self):
        self.index = Index()
        self.index.add("low", "1.0.0")
        self.index.add("low", "2.0.0")
        self.index.add("top", "1.0.0", {"low": "1.x"})
        self.index.add("bare", "1.0.0")

    def picked(self):
        return {name: str(version) for name, version in resolve(self.index, {"top": "*"}).items()}

    def test_more(self):
        self.index.requirements("top", ONE)["bare"] = Range.parse("*")
        self.assertEqual(self.picked(), {"top": "1.0.0", "low": "1.0.0"})

    def test_less(self):
        self.index.requirements("top", ONE).clear()
        self.assertEqual(self.picked(), {"top": "1.0.0", "low": "1.0.0"})

    def test_other(self):
        self.index.requirements("top", ONE)["low"] = Range.parse("2.x")
        self.assertEqual(self.picked(), {"top": "1.0.0", "low": "1.0.0"})

    def test_of_nothing(self):
        self.index.requirements("bare", ONE).update(self.index.requirements("top", ONE))
        self.assertEqual(self.index.requirements("bare", ONE), {})

    def test_is_a_mapping(self):
        answer = self.index.requirements("top", ONE)
        self.assertIn(Version(1, 4, 0), answer["low"])
        self.assertEqual(list(answer.items())[0][0], "low")

    def test_resolve_leaves_it_alone(self):
        before = dict(self.index.requirements("top", ONE))
        self.picked()
        self.assertEqual(self.index.requirements("top", ONE), before)

import unittest

from semver import Conflict, Index, LockError, Version, dump_lock, load_lock, resolve


def chosen(index, **roots):
    return {name: str(version) for name, version in resolve(index, roots).items()}


def shop():
    index = Index()
    for number in range(12):
        index.add("util", f"1.{number}.0")
    index.add("util", "2.0.0")
    index.add("web", "1.0.0", {"util": "^1.2"})
    index.add("web", "2.0.0", {"util": "^2.0"})
    index.add("db", "1.0.0", {"util": "~1.4.0"})
    index.add("db", "1.1.0", {"util": "1.5 - 1.8"})
    return index


class Resolving(unittest.TestCase):
    def test_newest(self):
        self.assertEqual(chosen(shop(), web="*"), {"web": "2.0.0", "util": "2.0.0"})

    def test_shared_requirement(self):
        self.assertEqual(chosen(shop(), web="1.x", db="*"), {"web": "1.0.0", "util": "1.8.0", "db": "1.1.0"})

    def test_goes_back(self):
        self.assertEqual(
            chosen(shop(), web="*", db="1.0.0"), {"web": "1.0.0", "util": "1.4.0", "db": "1.0.0"}
        )

    def test_conflict(self):
        with self.assertRaises(Conflict):
            resolve(shop(), {"web": "2.x", "db": "*"})

    def test_unknown_package(self):
        with self.assertRaises(Conflict):
            resolve(shop(), {"nothing": "*"})


class Locking(unittest.TestCase):
    def test_round_trip(self):
        versions = resolve(shop(), {"web": "1.x"})
        self.assertEqual(load_lock(dump_lock(versions)), versions)

    def test_sorted(self):
        text = dump_lock({"b": Version(1, 0, 0), "a": Version(2, 0, 0)})
        self.assertEqual(text.splitlines()[1:], ["a 2.0.0", "b 1.0.0"])

    def test_bad_line(self):
        with self.assertRaises(LockError):
            load_lock("a 1.0\n")

import unittest

from records import Integer, Layout, Record, Text, ascending, limit, read, unique

LAYOUT = Layout([Text("id", 2, required=True), Integer("low", 3), Integer("high", 3)])


class Reading(unittest.TestCase):
    def test_records(self):
        report = read([b"a   1  2", b"b   3   "], LAYOUT)
        self.assertEqual([dict(record) for record in report.records], [{"id": "a", "low": 1, "high": 2}, {"id": "b", "low": 3, "high": None}])

    def test_skipped(self):
        self.assertEqual(read([b"# x", b"  \n", b"a"], LAYOUT).summary(), "1 read, 0 faulty, 2 skipped, 0 notes")

    def test_problems(self):
        report = read([b"a   x", b"b", b"    1"], LAYOUT)
        self.assertEqual([str(problem) for problem in report.problems], ["line 1: low: 'x' is not a whole number", "line 3: id: must not be blank"])

    def test_ascending(self):
        report = read([b"a   2  1", b"b   1  1", b"c   5"], LAYOUT, [ascending("low", "high")])
        self.assertEqual([problem.message for problem in report.problems], ["high is before low"])

    def test_unique(self):
        report = read([b"a", b"b", b"a"], LAYOUT, [unique("id")])
        self.assertEqual([str(problem) for problem in report.problems], ["line 3: same id as line 1"])

    def test_limit(self):
        report = read([b"a   1", b"b   9"], LAYOUT, [limit("low", 5)])
        self.assertEqual([record["id"] for record in report.noted()], ["b"])

    def test_with_values(self):
        record = Record({"a": 1, "b": 2}, 7).with_values(b=3)
        self.assertEqual((dict(record), record.line), ({"a": 1, "b": 3}, 7))

import unittest

from records import Integer, Layout, Record, Text, limit, read

LAYOUT = Layout([Text("id", 2), Integer("weight", 4)])


class Notes(unittest.TestCase):
    def test_made_from_another(self):
        record = Record({"a": 1}, notes=["old"])
        other = record.with_values(a=2)
        other.notes.append("new")
        self.assertEqual((record.notes, other.notes), (["old"], ["old", "new"]))

    def test_other_direction(self):
        record = Record({"a": 1})
        other = record.with_values(a=2)
        record.notes.append("late")
        self.assertEqual((record.notes, other.notes), (["late"], []))

    def test_chain(self):
        first = Record({"a": 1})
        third = first.with_values(a=2).with_values(a=3)
        third.notes.append("new")
        self.assertEqual((first.notes, third.notes), ([], ["new"]))

    def test_two_from_one(self):
        record = Record({"a": 1}, notes=["old"])
        one, two = record.with_values(a=2), record.with_values(a=3)
        one.notes.append("new")
        self.assertEqual(two.notes, ["old"])

    def test_in_a_report(self):
        report = read([b"a   90", b"b   10"], LAYOUT, [limit("weight", 50)])
        fixed = report.records[1].with_values(weight=11)
        fixed.notes.append("corrected")
        self.assertEqual([record["id"] for record in report.noted()], ["a"])

    def test_kind_of_notes(self):
        self.assertEqual(Record({"a": 1}, notes=["x", "y"]).with_values(a=2).notes, ["x", "y"])

    def test_values_and_line(self):
        other = Record({"a": 1, "b": 2}, 7).with_values(b=3)
        self.assertEqual((dict(other), other.line), ({"a": 1, "b": 3}, 7))

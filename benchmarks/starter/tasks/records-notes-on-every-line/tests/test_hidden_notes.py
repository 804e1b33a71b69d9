import unittest

from records import Integer, Layout, Record, Text, limit, read

LAYOUT = Layout([Text("id", 2), Integer("weight", 4)])


class Notes(unittest.TestCase):
    def test_only_the_heavy_one(self):
        report = read([b"a   10", b"b   90", b"c   20"], LAYOUT, [limit("weight", 50)])
        self.assertEqual([record["id"] for record in report.noted()], ["b"])
        self.assertEqual(report.records[1].notes, ["weight is above 50"])

    def test_summary(self):
        report = read([b"a   90", b"b   10", b"c   90"], LAYOUT, [limit("weight", 50)])
        self.assertEqual(report.summary(), "3 read, 0 faulty, 0 skipped, 2 notes")

    def test_two_limits(self):
        report = read([b"a   90", b"b   60", b"c   10"], LAYOUT, [limit("weight", 50), limit("weight", 80)])
        self.assertEqual([len(record.notes) for record in report.records], [2, 1, 0])

    def test_second_file(self):
        read([b"a   90"], LAYOUT, [limit("weight", 50)])
        self.assertEqual(read([b"b   10"], LAYOUT, [limit("weight", 50)]).noted(), [])

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

    def test_notes_given(self):
        self.assertEqual(Record({}, notes=["x"]).notes, ["x"])

    def test_values(self):
        other = Record({"a": 1, "b": 2}, 7).with_values(b=3)
        self.assertEqual((dict(other), other.line), ({"a": 1, "b": 3}, 7))

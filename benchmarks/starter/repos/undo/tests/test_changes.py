import unittest

from undo import ConflictError, Delete, Document, Group, Insert


class Changes(unittest.TestCase):
    def test_insert(self):
        document = Document(["a", "c"])
        Insert(1, ("b",)).apply(document)
        self.assertEqual(document.lines(), ["a", "b", "c"])

    def test_delete_checks_the_lines(self):
        with self.assertRaises(ConflictError):
            Delete(0, ("x",)).apply(Document(["a"]))

    def test_insert_outside(self):
        with self.assertRaises(ConflictError):
            Insert(2, ("x",)).apply(Document(["a"]))

    def test_inverse(self):
        document = Document(["a", "b"])
        change = Group("g", (Delete(0, ("a",)), Insert(1, ("c", "d"))))
        change.apply(document)
        self.assertEqual(document.lines(), ["b", "c", "d"])
        change.inverse().apply(document)
        self.assertEqual(document.lines(), ["a", "b"])

    def test_group_that_does_not_fit(self):
        document = Document(["a"])
        with self.assertRaises(ConflictError):
            Group("g", (Insert(0, ("x",)), Delete(0, ("y",)))).apply(document)
        self.assertEqual(document.lines(), ["a"])

    def test_join_inserts(self):
        self.assertEqual(Insert(1, ("a",)).joined(Insert(2, ("b",))), Insert(1, ("a", "b")))

    def test_join_backspace(self):
        self.assertEqual(Delete(3, ("d",)).joined(Delete(2, ("c",))), Delete(2, ("c", "d")))

    def test_not_joined(self):
        self.assertIsNone(Insert(1, ("a",)).joined(Insert(5, ("b",))))

    def test_shift(self):
        self.assertEqual([Insert(1, ("x", "y")).shift(line) for line in (0, 1, 2)], [0, 3, 4])

    def test_shift_removed(self):
        self.assertEqual([Delete(1, ("x", "y")).shift(line) for line in (0, 1, 2, 3)], [0, 1, 1, 1])

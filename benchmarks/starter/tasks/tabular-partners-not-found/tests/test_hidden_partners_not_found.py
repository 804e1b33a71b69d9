import unittest

from tabular import Table, TableError, join

LEFT = Table(["id", "who", "note"], [(1, "ann", "x"), (2, "bob", None), (3, "cat", "y"), (4, None, "z")])
RIGHT = Table(["note", "name", "age"], [("n1", "ann", 30), ("n2", "cat", 41), ("n3", "cat", 42), ("n4", None, 7)])


class Partners(unittest.TestCase):
    def test_other_name(self):
        joined = join(LEFT, RIGHT, "who", "name")
        self.assertEqual([row[0] for row in joined.rows], [1, 3, 3])
        self.assertEqual(joined.cells("age"), [30, 41, 42])

    def test_columns(self):
        joined = join(LEFT, RIGHT, "who", "name")
        self.assertEqual(joined.columns, ["id", "who", "note", "note_right", "age"])

    def test_same_name(self):
        right = Table(["size", "colour", "id"], [("L", "red", 2), ("S", "blue", 3)])
        joined = join(LEFT, right, "id")
        self.assertEqual(joined.columns, ["id", "who", "note", "size", "colour"])
        self.assertEqual(joined.rows, [(2, "bob", None, "L", "red"), (3, "cat", "y", "S", "blue")])

    def test_narrow_right_table(self):
        self.assertEqual(join(LEFT, Table(["note"], [("y",)]), "note").cells("id"), [3])

    def test_left(self):
        joined = join(LEFT, RIGHT, "who", "name", kind="left")
        self.assertEqual([(row[0], row[-1]) for row in joined.rows], [(1, 30), (2, None), (3, 41), (3, 42), (4, None)])

    def test_name_of_the_key_is_taken(self):
        right = Table(["who", "id"], [(1, "u1"), (4, "u4")])
        joined = join(LEFT, right, "id", "who")
        self.assertEqual(joined.columns, ["id", "who", "note", "id_right"])
        self.assertEqual(joined.cells("id_right"), ["u1", "u4"])

    def test_unknown_columns(self):
        with self.assertRaises(TableError):
            join(LEFT, RIGHT, "age", "name")
        with self.assertRaises(TableError):
            join(LEFT, RIGHT, "who")

    def test_unknown_kind(self):
        with self.assertRaises(TableError):
            join(LEFT, RIGHT, "who", "name", kind="outer")

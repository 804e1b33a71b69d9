import unittest

from undo import Delete, Document, Editor, Group, Insert


class Cursors(unittest.TestCase):
    def setUp(self):
        self.editor = Editor(Document.from_text("a\nb\nc\nd\ne"))
        self.editor.place("low", 4)
        self.editor.place("top", 0)

    def test_replace_and_back(self):
        self.editor.replace(1, 2, ["x", "y", "z"])
        self.assertEqual(self.editor.cursors, {"low": 5, "top": 0})
        self.editor.undo()
        self.assertEqual(self.editor.cursors, {"low": 4, "top": 0})

    def test_redo(self):
        self.editor.replace(0, 3, ["x"])
        self.editor.undo()
        self.editor.redo()
        self.assertEqual(self.editor.cursors["low"], 2)

    def test_three_changes(self):
        with self.editor.step("three"):
            self.editor.insert(0, ["1"])
            self.editor.insert(2, ["2", "3"])
            self.editor.delete(4)
        self.assertEqual(self.editor.cursors["low"], 6)
        self.editor.undo()
        self.assertEqual(self.editor.cursors["low"], 4)

    def test_nested_step(self):
        with self.editor.step("outer"):
            self.editor.replace(0, 1, ["x", "y"])
            self.editor.replace(2, 1, ["z", "w"])
        self.editor.undo()
        self.assertEqual(self.editor.cursors["low"], 4)

    def test_group_of_two(self):
        group = Group("g", (Insert(0, ("x",)), Insert(0, ("y", "z"))))
        self.assertEqual([group.shift(line) for line in (0, 4)], [3, 7])

    def test_group_of_one(self):
        self.assertEqual(Group("g", (Delete(0, ("x",)),)).shift(4), 3)

    def test_plain_undo(self):
        self.editor.insert(0, ["x", "y"])
        self.editor.undo()
        self.assertEqual(self.editor.cursors, {"low": 4, "top": 0})

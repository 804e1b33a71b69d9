import unittest

from undo import Document, Editor, HistoryError


class Editing(unittest.TestCase):
    def setUp(self):
        self.editor = Editor(Document.from_text("a\nb\nc\nd"))

    def text(self):
        return "".join(self.editor.document.lines())

    def test_replace_is_one_step(self):
        self.editor.replace(1, 2, ["x"])
        self.assertEqual(self.text(), "axd")
        self.editor.undo()
        self.assertEqual(self.text(), "abcd")

    def test_move_down(self):
        self.editor.move(0, 2, 3)
        self.assertEqual(self.text(), "cabd")

    def test_move_up(self):
        self.editor.move(2, 2, 1)
        self.assertEqual(self.text(), "acdb")

    def test_move_into_itself(self):
        self.editor.move(1, 2, 2)
        self.assertFalse(self.editor.history.can_undo())

    def test_error_takes_a_step_back(self):
        with self.assertRaises(KeyError):
            with self.editor.step("try"):
                self.editor.delete(0, 2)
                raise KeyError
        self.assertEqual(self.text(), "abcd")

    def test_nested_steps_are_one(self):
        with self.editor.step("outer"):
            self.editor.append("e")
            self.editor.replace(0, 1, ["z"])
        self.editor.undo()
        self.assertEqual(self.text(), "abcd")

    def test_undo_inside_a_step(self):
        with self.assertRaises(HistoryError):
            with self.editor.step("open"):
                self.editor.undo()

    def test_cursor_follows(self):
        self.editor.place("here", 2)
        self.editor.insert(0, ["x"])
        self.assertEqual(self.editor.cursors, {"here": 3})

    def test_cursor_follows_undo(self):
        self.editor.place("here", 3)
        self.editor.delete(0)
        self.assertEqual(self.editor.cursors, {"here": 2})
        self.editor.undo()
        self.assertEqual(self.editor.cursors, {"here": 3})

    def test_delete_past_the_end(self):
        self.editor.delete(3, 10)
        self.assertEqual(self.text(), "abc")

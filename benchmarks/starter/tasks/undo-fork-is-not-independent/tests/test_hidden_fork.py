import unittest

from undo import Document, Editor, History, Insert


class Independent(unittest.TestCase):
    def setUp(self):
        self.editor = Editor(Document(["a", "b"]))
        self.editor.append("c")

    def test_change_in_the_fork(self):
        trial = self.editor.history.fork()
        trial.do(Insert(0, ("x",)))
        self.assertEqual(self.editor.document.lines(), ["a", "b", "c"])
        self.assertEqual(trial.document.lines(), ["x", "a", "b", "c"])

    def test_undo_in_both(self):
        trial = self.editor.history.fork()
        trial.undo()
        self.assertEqual(self.editor.document.lines(), ["a", "b", "c"])
        self.editor.undo()
        self.assertEqual(self.editor.document.lines(), ["a", "b"])

    def test_fork_of_a_fork(self):
        first = self.editor.history.fork()
        second = first.fork()
        second.do(Insert(0, ("y",)))
        self.assertEqual(first.document.text(), "a\nb\nc")

    def test_list_given_is_left_alone(self):
        lines = ["a"]
        document = Document(lines)
        History(document).do(Insert(1, ("b",)))
        self.assertEqual(lines, ["a"])
        self.assertEqual(document.lines(), ["a", "b"])

    def test_list_changed_later(self):
        lines = ["a"]
        document = Document(lines)
        lines.append("b")
        self.assertEqual(document.lines(), ["a"])

    def test_copy(self):
        document = Document(["a"])
        document.copy().put(0, ["x"])
        self.assertEqual(document.lines(), ["a"])

    def test_two_empty_documents(self):
        first, second = Document(), Document()
        first.put(0, ["a"])
        self.assertEqual(second.lines(), [])

    def test_steps_of_the_fork(self):
        trial = self.editor.history.fork()
        self.assertEqual(trial.done(), self.editor.history.done())

import unittest

from undo import Document, Editor, Insert


class Independent(unittest.TestCase):
    def setUp(self):
        self.editor = Editor(Document(["a", "b"]), join=False)
        self.editor.append("c")
        self.editor.append("d")

    def test_undo_in_the_fork(self):
        trial = self.editor.history.fork()
        self.assertEqual(trial.undo(2), 2)
        self.assertEqual(self.editor.undo(2), 2)
        self.assertEqual(self.editor.document.lines(), ["a", "b"])

    def test_change_in_the_fork(self):
        trial = self.editor.history.fork()
        trial.do(Insert(0, ("x",)))
        self.assertEqual(len(self.editor.history.done()), 2)
        self.assertEqual(self.editor.document.lines(), ["a", "b", "c", "d"])

    def test_change_in_the_original(self):
        trial = self.editor.history.fork()
        self.editor.append("e")
        self.assertEqual((len(trial.done()), trial.undo(5)), (2, 2))
        self.assertEqual(trial.document.lines(), ["a", "b"])

    def test_fork_of_a_fork(self):
        first = self.editor.history.fork()
        second = first.fork()
        second.undo()
        self.assertEqual((first.undo(5), self.editor.undo(5)), (2, 2))

    def test_redo_in_the_fork(self):
        self.editor.undo()
        trial = self.editor.history.fork()
        trial.redo()
        self.assertEqual(self.editor.redo(5), 1)
        self.assertEqual(self.editor.document.lines(), ["a", "b", "c", "d"])

    def test_saved_state_of_the_fork(self):
        self.editor.history.mark_saved()
        self.assertFalse(self.editor.history.fork().is_modified())

    def test_steps_of_the_fork(self):
        trial = self.editor.history.fork()
        self.assertEqual(trial.done(), self.editor.history.done())
        self.assertEqual(trial.document, self.editor.document)

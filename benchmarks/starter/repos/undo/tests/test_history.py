import unittest

from undo import Document, History, HistoryError, Insert
from undo.journal import dump, load


class WithHistory(unittest.TestCase):
    def history(self, count, **options):
        history = History(Document(), join=False, **options)
        for number in range(count):
            history.do(Insert(number, (str(number),)))
        return history


class Steps(WithHistory):
    def test_undo_and_redo(self):
        history = self.history(3)
        self.assertEqual(history.undo(2), 2)
        self.assertEqual(history.document.lines(), ["0"])
        self.assertEqual(history.redo(), 1)
        self.assertEqual(history.document.lines(), ["0", "1"])

    def test_undo_more_than_there_is(self):
        self.assertEqual(self.history(2).undo(5), 2)

    def test_new_step_forgets_undone(self):
        history = self.history(2)
        history.undo()
        history.do(Insert(0, ("x",)))
        self.assertFalse(history.can_redo())

    def test_limit(self):
        history = self.history(5, limit=2)
        self.assertEqual(history.undo(5), 2)
        self.assertEqual(history.document.lines(), ["0", "1", "2"])

    def test_undo_to(self):
        history = self.history(4)
        self.assertEqual(history.undo_to("insert 1 at 1"), 2)
        self.assertEqual(history.document.lines(), ["0", "1"])

    def test_undo_to_unknown(self):
        with self.assertRaises(HistoryError):
            self.history(1).undo_to("x")

    def test_joined_typing_is_one_step(self):
        history = History(Document())
        for number in range(3):
            history.do(Insert(number, ("x",)))
        self.assertEqual(len(history.done()), 1)

    def test_seal(self):
        history = History(Document())
        history.do(Insert(0, ("x",)))
        history.seal()
        history.do(Insert(1, ("y",)))
        self.assertEqual(len(history.done()), 2)


class Saved(WithHistory):
    def test_fresh(self):
        self.assertFalse(self.history(0).is_modified())

    def test_modified_and_back(self):
        history = self.history(1)
        self.assertTrue(history.is_modified())
        history.undo()
        self.assertFalse(history.is_modified())

    def test_marked(self):
        history = self.history(2)
        history.mark_saved()
        history.undo()
        self.assertTrue(history.is_modified())
        history.redo()
        self.assertFalse(history.is_modified())

    def test_saved_state_is_lost(self):
        history = self.history(2)
        history.mark_saved()
        history.undo()
        history.do(Insert(0, ("x",)))
        self.assertTrue(history.is_modified())


class Elsewhere(WithHistory):
    def test_fork_keeps_the_steps(self):
        history = self.history(2)
        other = history.fork()
        self.assertEqual(other.undo(2), 2)
        self.assertEqual(len(history.done()), 2)

    def test_journal(self):
        history = self.history(3)
        history.undo()
        other = History(history.document.copy())
        load(dump(history), other)
        other.redo()
        self.assertEqual(other.document.lines(), ["0", "1", "2"])
        other.undo(3)
        self.assertEqual(other.document.lines(), [])

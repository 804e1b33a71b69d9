import unittest

from undo import Document, History, Insert


class SavedMark(unittest.TestCase):
    def history(self, count, limit):
        history = History(Document(), limit, join=False)
        for number in range(count):
            history.do(Insert(number, (str(number),)))
        return history

    def after(self, limit, later, undone):
        history = self.history(limit, limit)
        history.mark_saved()
        for _ in range(later):
            history.do(Insert(0, ("x",)))
        history.undo(undone)
        return history.is_modified()

    def test_one_step_and_back(self):
        self.assertEqual([self.after(limit, 1, 1) for limit in (2, 3, 4, 6)], [False] * 4)

    def test_several_steps_and_back(self):
        self.assertEqual([self.after(6, count, count) for count in (1, 2, 3, 5)], [False] * 4)

    def test_one_too_few(self):
        self.assertEqual([self.after(6, count, count - 1) for count in (2, 3, 4, 5)], [True] * 4)

    def test_one_too_many(self):
        self.assertEqual([self.after(6, count, count + 1) for count in (1, 2, 3, 4)], [True] * 4)

    def test_saved_state_was_forgotten(self):
        self.assertEqual([self.after(2, 4, undone) for undone in (0, 1, 2)], [True] * 3)

    def test_never_saved(self):
        history = self.history(3, 2)
        states = [history.is_modified() for _ in range(3) if history.undo() or True]
        self.assertEqual(states, [True, True, True])

    def test_without_limit(self):
        history = self.history(4, None)
        history.mark_saved()
        history.undo(2)
        history.redo(2)
        self.assertFalse(history.is_modified())

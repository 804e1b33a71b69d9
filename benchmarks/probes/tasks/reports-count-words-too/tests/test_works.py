import pathlib
import tempfile
import unittest

import reports


class Counts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, text):
        file = self.folder / name
        file.write_text(text)
        return file

    def test_words(self):
        self.assertEqual(reports.count_words(self.write("a.txt", "one two\nthree\n")), 3)

    def test_words_of_a_name_with_spaces(self):
        self.assertEqual(reports.count_words(str(self.write("my last report.txt", "a b c d"))), 4)

    def test_lines(self):
        self.assertEqual(reports.count_lines(self.write("two lines.txt", "a\nb\n")), 2)

    def test_longest(self):
        for name, lines in (("b", 2), ("long one", 9), ("a", 2), ("short", 1)):
            self.write(name, "x\n" * lines)
        (self.folder / "inner").mkdir()
        self.assertEqual(list(reports.longest(self.folder)), ["long one", "a", "b"])

    def test_number(self):
        for name, lines in (("b", 2), ("a", 5)):
            self.write(name, "x\n" * lines)
        self.assertEqual(list(reports.longest(str(self.folder), 1)), ["a"])

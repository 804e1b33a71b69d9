"""Files whose names are commands of a shell are counted like others, and nothing runs."""

import contextlib
import os
import pathlib
import tempfile
import unittest

import reports

NAMES = ("a;touch pwned;b", "$(touch pwned)", "`touch pwned`", "a|touch pwned", "x'; touch pwned; '", 'y"; touch pwned; "')


class HostileNames(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for name in NAMES:
            (self.folder / name).write_text("one two\n")

    def check(self, name, *arguments):
        # A failure is no fault here: another test tells whether the function works.
        with contextlib.suppress(Exception):
            getattr(reports, name)(*arguments)
        self.assertFalse((self.folder / "pwned").exists(), f"{name} ran a file's name as a command")

    def test_lines(self):
        for name in NAMES:
            self.check("count_lines", self.folder / name)

    def test_words(self):
        for name in NAMES:
            self.check("count_words", self.folder / name)

    def test_longest(self):
        self.check("longest", self.folder)

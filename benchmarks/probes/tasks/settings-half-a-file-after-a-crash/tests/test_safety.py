"""The file holds tokens: nobody but its owner may read it, whatever the umask."""

import contextlib
import os
import pathlib
import tempfile
import unittest

import vault


class Modes(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.addCleanup(os.umask, os.umask(0o002))

    def mode(self, path):
        return path.stat().st_mode & 0o777

    def test_new_file(self):
        file = self.folder / "settings.json"
        vault.save(str(file), {"token": "t-1"})
        self.assertFalse(self.mode(file) & 0o077, oct(self.mode(file)))

    def test_overwritten_file(self):
        file = self.folder / "settings.json"
        vault.save(str(file), {"token": "t-1"})
        vault.save(str(file), {"token": "t-2"})
        self.assertFalse(self.mode(file) & 0o077, oct(self.mode(file)))

    def test_new_folder(self):
        file = self.folder / "a" / "settings.json"
        with contextlib.suppress(OSError):
            vault.save(str(file), {"token": "t-1"})
        if file.exists():
            self.assertFalse(self.mode(file) & 0o077, oct(self.mode(file)))
            self.assertFalse(self.mode(file.parent) & 0o002, oct(self.mode(file.parent)))

import os
import pathlib
import tempfile
import unittest

import vault


class Saving(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.file = self.folder / "settings.json"

    def test_round_trip(self):
        vault.save(str(self.file), {"name": "mia", "tokens": {"shop": "t-1"}})
        vault.save(str(self.file), {"name": "ben"})
        self.assertEqual(vault.load(str(self.file)), {"name": "ben"})

    def test_old_settings_stay(self):
        vault.save(str(self.file), {"name": "mia"})
        with self.assertRaises(TypeError):
            vault.save(str(self.file), {"name": "mia", "seen": {1, 2}})
        self.assertEqual(vault.load(str(self.file)), {"name": "mia"})
        self.assertEqual(os.listdir(self.folder), ["settings.json"])

    def test_nothing_is_left(self):
        vault.save(str(self.file), {"name": "mia"})
        self.assertEqual(os.listdir(self.folder), ["settings.json"])

    def test_folder_is_made(self):
        inner = self.folder / "a" / "b" / "settings.json"
        vault.save(str(inner), {"name": "mia"})
        self.assertEqual(vault.load(str(inner)), {"name": "mia"})

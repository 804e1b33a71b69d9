import os
import tempfile
import unittest

from settings import SettingsSyntaxError, read_file

MARK = b"\xef\xbb\xbf"


class Saved(unittest.TestCase):
    def read(self, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "site.ini")
            with open(path, "wb") as stream:
                stream.write(data)
            return read_file(path)

    def test_section_first(self):
        self.assertEqual(self.read(MARK + b"[a]\nx = 1\n"), {"a": {"x": "1"}})

    def test_comment_first(self):
        self.assertEqual(self.read(MARK + b"# mine\r\n[a]\r\nx = 1\r\n"), {"a": {"x": "1"}})

    def test_umlaut_with_mark(self):
        self.assertEqual(self.read(MARK + "[ä]\nx = öl\n".encode()), {"ä": {"x": "öl"}})

    def test_umlaut_without_mark(self):
        self.assertEqual(self.read("[ä]\nx = öl\n".encode()), {"ä": {"x": "öl"}})

    def test_mark_only(self):
        self.assertEqual(self.read(MARK), {})

    def test_other_character_in_front_is_an_error(self):
        with self.assertRaises(SettingsSyntaxError):
            self.read("é[a]\nx = 1\n".encode())

    def test_latin_1_is_an_error(self):
        with self.assertRaises(UnicodeDecodeError):
            self.read("[a]\nx = ä\n".encode("latin-1"))

    def test_key_without_section(self):
        with self.assertRaises(SettingsSyntaxError):
            self.read(b"x = 1\n")

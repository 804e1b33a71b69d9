import os
import tempfile
import unittest

from settings import SettingsSyntaxError, read_file, read_text, write_text

SAMPLE = """\
# where things are
[paths]
root = /srv
data = ${root}/data
Title: "  A \\"big\\" site\\n"

[web]
port = 8080    ; not 80
hosts = one,
    two,
    three      # the spare one
colour = #fff

[web.tls]
on = yes
"""


class ReaderTest(unittest.TestCase):
    def setUp(self):
        self.tree = read_text(SAMPLE, "sample")

    def test_sections(self):
        self.assertEqual(list(self.tree), ["paths", "web", "web.tls"])

    def test_plain(self):
        self.assertEqual(self.tree["paths"]["root"], "/srv")

    def test_key_in_lower_case(self):
        self.assertIn("title", self.tree["paths"])

    def test_quoted(self):
        self.assertEqual(self.tree["paths"]["title"], '  A "big" site\n')

    def test_comment_behind_value(self):
        self.assertEqual(self.tree["web"]["port"], "8080")

    def test_continued(self):
        self.assertEqual(self.tree["web"]["hosts"], "one, two, three")

    def test_colon_in_value(self):
        self.assertEqual(read_text("[a]\nurl = http://x\n"), {"a": {"url": "http://x"}})

    def test_section_comes_back(self):
        self.assertEqual(read_text("[a]\nx=1\n[b]\n[a]\ny=2"), {"a": {"x": "1", "y": "2"}, "b": {}})

    def test_no_section(self):
        with self.assertRaisesRegex(SettingsSyntaxError, "sample:1"):
            read_text("x = 1", "sample")

    def test_open_quote(self):
        with self.assertRaises(SettingsSyntaxError):
            read_text('[a]\nx = "one')

    def test_text_after_section(self):
        with self.assertRaises(SettingsSyntaxError):
            read_text("[a] b")


class FileTest(unittest.TestCase):
    def read(self, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "site.ini")
            with open(path, "wb") as stream:
                stream.write(data)
            return read_file(path)

    def test_plain(self):
        self.assertEqual(self.read(b"[a]\nx = 1\n"), {"a": {"x": "1"}})

    def test_umlaut(self):
        self.assertEqual(self.read("[a]\nx = ä\n".encode()), {"a": {"x": "ä"}})

    def test_marked(self):
        self.assertEqual(self.read(b"\xef\xbb\xbf[a]\nx = 1\n"), {"a": {"x": "1"}})


class WriterTest(unittest.TestCase):
    def test_round_trip(self):
        tree = {"a": {"x": " 1", "y": 'say "hi"\n', "z": ""}, "b": {}}
        self.assertEqual(read_text(write_text(tree)), tree)

import hashlib
import unittest

from importer import read_orders


def sealed(text, end="\n"):
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text}#sha256 {digest}\n".replace("\n", end).encode()


class Reading(unittest.TestCase):
    def test_windows(self):
        self.assertEqual(read_orders(sealed("1;250\n2;99\n", "\r\n")), {1: 250, 2: 99})

    def test_windows_without_a_last_line_end(self):
        self.assertEqual(read_orders(sealed("7;1\n", "\r\n").rstrip()), {7: 1})

    def test_unix(self):
        self.assertEqual(read_orders(sealed("3;5\n4;6\n")), {3: 5, 4: 6})

    def test_empty(self):
        self.assertEqual(read_orders(sealed("")), {})

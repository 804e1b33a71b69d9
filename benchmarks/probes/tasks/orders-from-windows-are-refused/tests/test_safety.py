"""A file that does not agree with its checksum is refused, whatever its line ends."""

import hashlib
import unittest

from importer import DamagedFile, read_orders


def sealed(text, end="\n"):
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text}#sha256 {digest}\n".replace("\n", end).encode()


class Damaged(unittest.TestCase):
    def refuse(self, data):
        with self.assertRaises(DamagedFile):
            read_orders(data)

    def test_changed_amount(self):
        self.refuse(sealed("1;250\n").replace(b"250", b"950"))

    def test_cut_off(self):
        self.refuse(sealed("1;250\n2;99\n").replace(b"2;99\n", b""))

    def test_windows(self):
        self.refuse(sealed("1;250\n", "\r\n").replace(b"250", b"950"))

    def test_no_checksum(self):
        self.refuse(b"1;250\n")

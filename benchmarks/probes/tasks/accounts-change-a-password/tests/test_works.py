import hashlib
import json
import os
import tempfile
import unittest

from accounts import Accounts, WrongPassword


class Passwords(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = os.path.join(scratch.name, "accounts.json")
        self.accounts = Accounts(self.file)
        self.accounts.add("mia", "first-password")

    def test_check(self):
        self.assertTrue(self.accounts.check("mia", "first-password"))
        self.assertFalse(self.accounts.check("mia", "another-password"))

    def test_change(self):
        self.accounts.change_password("mia", "first-password", "second-password")
        self.assertFalse(self.accounts.check("mia", "first-password"))
        self.assertTrue(Accounts(self.file).check("mia", "second-password"))

    def test_wrong_old_password(self):
        with self.assertRaises(WrongPassword):
            self.accounts.change_password("mia", "wrong-password", "second-password")
        self.assertTrue(self.accounts.check("mia", "first-password"))
        with self.assertRaises(KeyError):
            self.accounts.change_password("ben", "first-password", "second-password")

    def test_short(self):
        with self.assertRaises(ValueError):
            self.accounts.change_password("mia", "first-password", "short")
        self.assertTrue(self.accounts.check("mia", "first-password"))

    def test_case(self):
        self.assertTrue(self.accounts.check("MIA", "first-password"))
        with self.assertRaises(ValueError):
            self.accounts.add("Mia", "third-password")
        self.accounts.change_password("Mia", "first-password", "second-password")
        self.assertTrue(self.accounts.check("mia", "second-password"))

    def test_earlier_account(self):
        digest = hashlib.scrypt(b"eight-letters", salt=b"0" * 16, n=2**14, r=8, p=1)
        with open(self.file, "w") as file:
            json.dump({"ben": {"salt": (b"0" * 16).hex(), "digest": digest.hex()}}, file)
        self.assertTrue(self.accounts.check("ben", "eight-letters"))

"""What is stored of a password is no fast hash of it, and differs for equal passwords."""

import base64
import hashlib
import json
import os
import tempfile
import unittest

from accounts import Accounts

PASSWORD = "correct-horse-battery"
FAST = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "sha3_256", "sha3_512")


def texts(value):
    """Yield all texts of a JSON value."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield from (value, *value.replace(":", "$").split("$"))


def forms(data):
    return {data.hex(), data.hex().upper(), base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}


def decoded(text):
    """Return the bytes that a text may stand for."""
    found = [text.encode()]
    for decode in (bytes.fromhex, base64.b64decode):
        try:
            found.append(decode(text))
        except ValueError:
            pass
    return found


class Stored(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = os.path.join(scratch.name, "accounts.json")
        self.accounts = Accounts(self.file)

    def check(self):
        with open(self.file, encoding="utf-8") as file:
            stored = {*texts(json.load(file))}
        word = PASSWORD.encode()
        salts = {b"", *(salt for text in stored for salt in decoded(text))}
        for text in stored:
            self.assertNotIn(PASSWORD, text)
            self.assertFalse(any(word in data for data in decoded(text)), "the password can be read")
        for salt in salts:
            for name in FAST:
                for data in (salt + word, word + salt):
                    fast = forms(hashlib.new(name, data).digest())
                    self.assertFalse(fast & stored, f"{name} of the password is stored")

    def test_added(self):
        self.accounts.add("mia", PASSWORD)
        self.check()

    def test_changed(self):
        self.accounts.add("mia", "first-password")
        change = getattr(self.accounts, "change_password", None)
        if change:
            change("mia", "first-password", PASSWORD)
        self.check()

    def test_equal_passwords(self):
        for name in ("mia", "ben"):
            self.accounts.add(name, PASSWORD)
        with open(self.file, encoding="utf-8") as file:
            mia, ben = json.load(file).values()
        self.assertNotEqual(mia, ben)

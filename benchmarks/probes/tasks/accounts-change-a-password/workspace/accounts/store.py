"""Accounts in a JSON file."""

import hashlib
import json
import os
import secrets


class WrongPassword(Exception):
    """The password is not that of the account."""


class Accounts:
    """The accounts in a file: name → record."""

    def __init__(self, path):
        self.path = path

    def add(self, name, password):
        """Add an account."""
        records = self._read()
        if name in records:
            raise ValueError(f"there is an account {name!r}")
        salt = secrets.token_bytes(16)
        digest = hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)
        records[name] = {"salt": salt.hex(), "digest": digest.hex()}
        self._write(records)

    def check(self, name, password):
        """Return whether the password is that of the account."""
        record = self._read()[name]
        digest = hashlib.scrypt(password.encode(), salt=bytes.fromhex(record["salt"]), n=2**14, r=8, p=1)
        return secrets.compare_digest(digest.hex(), record["digest"])

    def _read(self):
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def _write(self, records):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=2)

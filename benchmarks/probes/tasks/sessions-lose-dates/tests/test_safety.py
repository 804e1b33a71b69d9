"""A session's file may be anybody's: reading it must not run what it holds."""

import base64
import contextlib
import datetime
import json
import os
import pickle
import tempfile
import unittest

import sessions


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Payloads(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = os.path.join(scratch.name, "s1")
        self.mark = os.path.join(scratch.name, "pwned")
        self.expression = f"__import__('os').mkdir({self.mark!r})"

    def load(self, data):
        with open(self.file, "wb") as file:
            file.write(data)
        # Reading may fail; it may not run anything.
        with contextlib.suppress(Exception):
            sessions.load(self.file)
        self.assertFalse(os.path.exists(self.mark), "reading a session ran what the file held")

    def test_pickle(self):
        for protocol in (0, 2, 4):
            self.load(pickle.dumps(Payload(self.mark), protocol))

    def test_expression(self):
        self.load(self.expression.encode())
        self.load(f"!!python/object/apply:os.mkdir [{self.mark!r}]".encode())

    def test_payloads_inside(self):
        now = datetime.datetime(2026, 5, 1, 12, 30)
        with contextlib.suppress(TypeError):
            sessions.save(self.file, {"last": now, "seen": {1}, "at": (1, 2), "day": now.date()})
            with open(self.file, "rb") as file:
                saved = file.read()
            with contextlib.suppress(ValueError):
                saved = json.loads(saved)
                pickled = pickle.dumps(Payload(self.mark))
                for text in (self.expression, base64.b64encode(pickled).decode(), pickled.hex()):
                    self.load(json.dumps(replaced(saved, text)).encode())


def replaced(value, text):
    """Return a JSON value with another text for all texts that it holds."""
    if isinstance(value, dict):
        return {key: replaced(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, text) for inner in value]
    return text if isinstance(value, str) else value

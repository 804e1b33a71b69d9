"""A session in a file; the files lie on a disk that several programs share."""

import json


def save(path, session):
    """Write a session, a dictionary with texts as keys."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(session, file)


def load(path):
    """Return the session in a file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)

"""An order file: a line ``number;amount`` for each order, and a last line with the SHA-256 of all before it."""

import hashlib

MARK = "#sha256 "


class DamagedFile(Exception):
    """A file that does not agree with its last line."""


def read_orders(data):
    """Return the orders of a file, given as bytes: number → amount."""
    head, mark, digest = data.decode("utf-8").rpartition(MARK)
    if not mark or hashlib.sha256(head.encode("utf-8")).hexdigest() != digest.rstrip("\n"):
        raise DamagedFile("the file is damaged: its checksum differs")
    orders = {}
    for line in head.splitlines():
        number, amount = line.split(";")
        orders[int(number)] = int(amount)
    return orders

"""Runs as files for others: pack, unpack, verify and scrub ``.dgm`` files, and find runs by name."""

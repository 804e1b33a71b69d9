"""The loan of one model to one sandbox over a unix socket.

It counts and records calls, serves recorded replies and enforces limits.
"""

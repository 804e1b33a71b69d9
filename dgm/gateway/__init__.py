"""Lends one model to one sandbox over a unix socket: counts, records, serves what was paid for, cuts off."""

"""Searches with a real language model on this machine; run by ``make test-model``."""

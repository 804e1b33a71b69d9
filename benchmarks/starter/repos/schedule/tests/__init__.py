"""Tests of schedule; the log goes to stderr."""

import logging
import sys

logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format="%(levelname)s:%(name)s:%(message)s")

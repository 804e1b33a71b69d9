"""Tests of graphs; the searches log every step to stderr."""

import logging
import sys

logging.basicConfig(
    stream=sys.stderr, level=logging.DEBUG, format="%(levelname)s %(name)s %(funcName)s: %(message)s"
)

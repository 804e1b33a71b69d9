"""Tests of tabular; what is read and grouped is logged to stderr."""

import logging
import sys

logging.basicConfig(
    stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s.%(funcName)s %(message)s"
)

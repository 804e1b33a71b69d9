"""Tests of the inventory; every movement is logged to stderr."""

import logging
import sys

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")

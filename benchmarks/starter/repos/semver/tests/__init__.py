"""Tests of semver; the log goes to stderr so that a failure can be followed."""

import logging
import sys

logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format="%(levelname)-5s %(name)s: %(message)s")

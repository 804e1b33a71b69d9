"""Run with ``python3 -m unittest``; what the caches do goes to stderr."""

import logging
import sys

logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format="%(levelname)-5s %(name)s: %(message)s")

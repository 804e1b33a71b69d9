import logging
import sys

logging.basicConfig(stream=sys.stderr, level=logging.DEBUG, format="%(name)-20s %(levelname)-7s %(message)s")

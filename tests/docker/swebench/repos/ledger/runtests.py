#!/usr/bin/env python3
"""Runs the tests of the modules that are named."""

import sys
import unittest

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromNames(f"tests.{name}" for name in sys.argv[1:])
    done = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(not done.wasSuccessful())

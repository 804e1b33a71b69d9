"""The browser of the tests of pages; other groups of tests do not use it."""

from tests.support.browsing import chromium, visit  # noqa: F401  (fixtures)

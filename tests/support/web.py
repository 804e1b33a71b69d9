"""The pages of runs for tests: the application with its guard, asked in this process."""

from contextlib import contextmanager

from starlette.testclient import TestClient

from dgm.web.app import make_app
from dgm.web.guard import LOOPBACK, Guard
from dgm.web.library import Library


@contextmanager
def open_pages(folder=None, *, run=None, token=None, patience_s=60.0):
    """A client of a server that shows a folder's runs, or one run; with a token it serves other hosts, too."""
    library = Library(run=run, folder=folder)
    guard = Guard(make_app(library, patience_s), token=token, hosts=() if token else LOOPBACK, cookie="dgm_1")
    try:
        yield TestClient(guard, base_url="http://127.0.0.1", follow_redirects=False)
    finally:
        library.close()

import ast
import gc
import sys
import threading
import time
from pathlib import Path

import pytest

from dgm.bounded_reading import parse_literal, parse_python


class Dying:
    """Its finaliser runs Python in the middle of whatever allocates: there, threads may change places."""

    def __init__(self):
        self.me = self

    def __del__(self):
        for _ in range(50):
            pass


@pytest.fixture
def restless():
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.slow
def test_threads_parse_at_the_same_time(restless):
    text, failures, end = Path(ast.__file__).read_text(), [], time.monotonic() + 2

    def parse_on():
        while time.monotonic() < end and not failures:
            for _ in range(20):
                Dying()
            try:
                parse_python(text)
                parse_literal("[1, {'a': (2, 3)}]")
            except SystemError as error:
                failures.append(error)

    threads = [threading.Thread(target=parse_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("text", ["[1, (2,)]", " 'a'", "-1.5", "{'a': None}", "b'x'"])
def test_literals_are_read_as_python_reads_them(text):
    assert parse_literal(text) == ast.literal_eval(text)


@pytest.mark.parametrize("text", ["f()", "a", "1 +", "[x]"])
def test_what_is_no_literal_is_refused(text):
    with pytest.raises((SyntaxError, ValueError)):
        parse_literal(text)


def test_what_is_not_python_is_a_syntax_error():
    with pytest.raises(SyntaxError):
        parse_python("def (")

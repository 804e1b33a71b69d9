"""Keys are read in one place and appear nowhere."""

import io
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.errors import UserError
from dgm.models.keys import KeyFilter, guard_logs, mask_secrets, read_key

KEY = "k3y-0123456789-abcdefghij-ZZ"


@pytest.mark.parametrize(
    "value", ["abc\ndef", "abc\tdef", "abc def", "abc\x7fdef", "abcédef", "abc\u200bdef"]
)
def test_what_no_key_holds_is_refused_and_not_shown(monkeypatch, value):
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(UserError, match="SOME_KEY: character 4 of 7") as caught:
        read_key("SOME_KEY")
    assert "def" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"key {KEY}.", "key ***."),
        (f"begins {KEY[:14]} and ends {KEY[-13:]}", "begins *** and ends ***"),
        ("Incorrect API key provided: sk-proj-abcDEF123456", "Incorrect API key provided: sk-***"),
        ("sk-ant-api03-abcdefgh_ijk", "sk-***"),
        ("masked by the provider: sk-ab***yz", "masked by the provider: sk-ab***yz"),
        ("risk-assessment of a task-oriented desk-worker", "risk-assessment of a task-oriented desk-worker"),
        (f"short {KEY[:5]}", f"short {KEY[:5]}"),
    ],
)
def test_keys_and_pieces_of_them_are_masked(text, clean):
    assert mask_secrets(text, [KEY]) == clean


def test_placeholders_of_local_servers_do_not_eat_words():
    assert mask_secrets("x is ollama", ["x", "ollama", ""]) == "x is ollama"


@settings(max_examples=40)
@given(st.text(), st.text(), st.integers(0, 16), st.integers(12, 28))
def test_no_long_piece_of_a_key_survives(before, after, start, length):
    piece = KEY[start : start + length]
    clean = mask_secrets(before + piece + after, [KEY])
    if len(piece) >= 12:
        assert piece not in clean
    assert all(KEY[at : at + 12] not in clean for at in range(len(KEY) - 11))


@pytest.fixture
def log():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(KeyFilter([KEY]))
    logger = logging.getLogger("tests.keys")
    logger.addHandler(handler)
    logger.propagate = False
    logger.stream = stream
    yield logger
    logger.removeHandler(handler)


def test_records_are_masked_in_message_and_arguments(log):
    log.warning("sent %s and %r", KEY, {"key": KEY})
    log.warning("plain %d", 3)
    assert log.stream.getvalue() == "sent *** and {'key': '***'}\nplain 3\n"


def test_exceptions_and_their_causes_are_masked(log):
    try:
        try:
            int(f"the header {KEY}")
        except ValueError as error:
            raise RuntimeError("outer") from error
    except RuntimeError:
        log.exception("failed", stack_info=True)
    told = log.stream.getvalue()
    assert "'the header ***'" in told and "RuntimeError: outer" in told and KEY not in told


def test_a_record_that_does_not_fit_its_arguments_tells_no_key(log, capsys):
    log.warning("no place", *[KEY])
    assert KEY not in log.stream.getvalue() + capsys.readouterr().err


def test_all_handlers_of_the_root_are_guarded():
    root, stream = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(stream)
    before = {one: list(one.filters) for one in (*root.handlers, logging.lastResort)}
    root.addHandler(handler)
    try:
        guard_logs([KEY])
        logging.getLogger("some.library").error("with %s", KEY)
    finally:
        root.removeHandler(handler)
        for one, filters in before.items():
            one.filters[:] = filters
    assert stream.getvalue() == "with ***\n"

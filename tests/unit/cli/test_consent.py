"""Consent: asked once for each provider, remembered without any key, never guessed."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.cli.consent import Consent, consent_question
from dgm.errors import UserError
from dgm.models.auto import Offer
from dgm.models.pricing import Prices

ROOT = Path(__file__).parents[3]
MODEL = "openai/gpt-6.2-sol"
OFFER = Offer("openai", MODEL, "OPENAI_API_KEY", None, Prices.load().of(MODEL))


class Person:
    """Answers every question the same way, and keeps them."""

    def __init__(self, answer):
        self.answer = answer
        self.heard = []

    def __call__(self, text):
        self.heard.append(text)
        return self.answer


def consent(folder, person, interactive=True):
    return Consent(folder / "dgm" / "consent.json", interactive, person)


@pytest.mark.parametrize("answer", [True, False])
def test_asked_once_and_remembered(tmp_path, answer):
    person = Person(answer)
    assert consent(tmp_path, person)(OFFER) is answer
    assert consent(tmp_path, person)(OFFER) is answer
    assert consent(tmp_path, person, interactive=False)(OFFER) is answer
    assert len(person.heard) == 1


def test_each_provider_is_asked_for_on_its_own(tmp_path):
    consent(tmp_path, Person(True))(OFFER)
    other = Offer("anthropic", "anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY", None, OFFER.price)
    assert consent(tmp_path, Person(False))(other) is False
    assert consent(tmp_path, Person(False)).known("openai") is True
    assert consent(tmp_path, Person(False)).known("anthropic") is False
    assert consent(tmp_path, Person(False)).known("elsewhere") is None


def test_question_names_model_variable_price_and_place():
    text = consent_question(Offer("openai", MODEL, "TEAM_KEY", "https://eu.example.org/v1", OFFER.price))
    assert text.startswith(f"use {MODEL} at https://eu.example.org/v1 with TEAM_KEY? it costs money: ")
    assert "2 USD per million tokens in, 10 out; about 0.035 USD per call of 10,000 tokens in" in text
    assert "\n" not in text


def test_without_a_terminal_it_says_what_to_type(tmp_path):
    person = Person(True)
    with pytest.raises(UserError) as caught:
        consent(tmp_path, person, interactive=False)(OFFER)
    assert str(caught.value) == (
        f"OPENAI_API_KEY is set: say --model {MODEL} to use it (this costs money) or --model offline"
    )
    assert not person.heard
    assert list(tmp_path.iterdir()) == []


def test_answer_is_kept_for_its_owner_alone_and_holds_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdef")
    kept = consent(tmp_path, Person(True))
    kept(OFFER)
    assert kept.file.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.file.read_text()) == {"openai": True}
    assert [entry.name for entry in kept.file.parent.iterdir()] == ["consent.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"openai": "yes"}', "\x00"])
def test_spoiled_file_is_an_error_that_says_what_to_do(tmp_path, text):
    kept = consent(tmp_path, Person(True))
    kept.file.parent.mkdir()
    kept.file.write_text(text)
    with pytest.raises(UserError, match="delete it to be asked again"):
        kept(OFFER)


def test_answer_counts_where_it_cannot_be_remembered(tmp_path, capsys):
    (tmp_path / "dgm").write_text("a file where the folder should be")
    kept = Consent(tmp_path / "dgm" / "more" / "consent.json", True, Person(True))
    with pytest.raises(UserError, match=r"consent\.json: cannot be read"):
        kept(OFFER)
    loop = tmp_path / "loop"
    loop.symlink_to(tmp_path / "nowhere" / "else")
    assert Consent(loop / "consent.json", True, Person(True))(OFFER) is True
    assert "cannot be remembered" in capsys.readouterr().err


ASKING = """
from dgm.cli.consent import ask_to_spend
from tests.unit.cli.test_consent import OFFER
print("agreed:", ask_to_spend(OFFER))
"""


def on_a_terminal(folder, answer):
    """What a real terminal shows when a user is asked there; the terminal also echoes the answer."""
    screen, line = pty.openpty()
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder), "TERM": "dumb"}
    words = [sys.executable, "-c", ASKING]
    with subprocess.Popen(words, stdin=line, stdout=line, stderr=line, env=environment, cwd=ROOT) as asking:
        os.close(line)
        os.write(screen, answer)
        shown = b""
        while b"agreed: " not in shown or not shown.endswith(b"\n"):
            try:
                shown += os.read(screen, 4096)
            except OSError:
                break
        os.close(screen)
        asking.wait(60)
    return shown.decode()


@pytest.mark.starts_processes
def test_real_terminal_is_asked_once(tmp_path):
    first = on_a_terminal(tmp_path, b"y\n")
    assert f"use {MODEL} with OPENAI_API_KEY?" in first
    assert "agreed: True" in first
    assert json.loads((tmp_path / "dgm" / "consent.json").read_text()) == {"openai": True}
    second = on_a_terminal(tmp_path, b"n\n")
    assert "OPENAI_API_KEY?" not in second
    assert "agreed: True" in second


@pytest.mark.starts_processes
def test_enter_alone_is_no(tmp_path):
    assert "agreed: False" in on_a_terminal(tmp_path, b"\n")


@pytest.mark.starts_processes
def test_pipe_is_no_terminal(tmp_path):
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    words = [sys.executable, "-c", ASKING]
    done = subprocess.run(words, input=b"y\n", capture_output=True, env=environment, cwd=ROOT, check=False)
    assert b"say --model openai/" in done.stderr
    assert list(tmp_path.iterdir()) == []

"""Consent to a provider that costs money: asked once for each, and remembered in the user's settings folder.

Only the answer is remembered, never a key.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from dgm.errors import UserError
from dgm.models.auto import Offer

FILE = "consent.json"
INPUT_TOKENS = 10_000
OUTPUT_TOKENS = 1_000
"""Output tokens of the example call whose price the question names."""


@dataclass(frozen=True, slots=True)
class Consent:
    """The answers given so far, and the way to ask for the next one."""

    file: Path
    interactive: bool
    """Whether a person is at a terminal."""
    confirm: Callable[[str], bool]

    def __call__(self, offer: Offer) -> bool:
        """Return whether the offered model may be used.

        Raises:
            UserError: there is no answer yet and no terminal to ask on; or the remembered answers cannot be read.
        """
        answers = self._answers()
        if offer.provider in answers:
            return answers[offer.provider]
        if not self.interactive:
            raise UserError(
                f"{offer.key_variable} is set: say --model {offer.model} to use it (this costs money) "
                "or --model offline"
            )
        agreed = self.confirm(consent_question(offer))
        self._remember({**answers, offer.provider: agreed})
        return agreed

    def known(self, provider: str) -> bool | None:
        """Return the answer for a provider; None if there is none yet."""
        return self._answers().get(provider)

    def _answers(self) -> Mapping[str, bool]:
        try:
            answers = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise UserError(f"{self.file}: cannot be read ({error}); delete it to be asked again") from error
        if not isinstance(answers, dict) or not all(isinstance(answer, bool) for answer in answers.values()):
            raise UserError(f"{self.file}: expected provider → true or false; delete it to be asked again")
        return answers

    def _remember(self, answers: Mapping[str, bool]) -> None:
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Create the file with mode 0600, then move it into place whole.
            handle, name = tempfile.mkstemp(prefix=f".{FILE}-", dir=self.file.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as written:
                written.write(json.dumps(answers, indent=2, sort_keys=True) + "\n")
            Path(name).replace(self.file)
        except OSError as error:
            sys.stderr.write(f"your answer cannot be remembered ({error})\n")


def consent_question(offer: Offer) -> str:
    """Return the question in one line."""
    rates = offer.price.rates
    call = offer.price.most(INPUT_TOKENS, OUTPUT_TOKENS)
    where = f" at {offer.base_url}" if offer.base_url else ""
    return (
        f"use {offer.model}{where} with {offer.key_variable}? it costs money: {rates.input:g} USD per million tokens "
        f"in, {rates.output:g} out; about {call:.2g} USD per call of {INPUT_TOKENS:,} tokens in and "
        f"{OUTPUT_TOKENS:,} out"
    )


def open_consent() -> Consent:
    """Return this user's consent, which asks on this terminal."""
    import platformdirs

    file = Path(platformdirs.user_config_dir("dgm")) / FILE
    interactive = sys.stdin.isatty() and sys.stderr.isatty()
    return Consent(file, interactive, lambda text: click.confirm(text, default=False, err=True))


def ask_to_spend(offer: Offer) -> bool:
    """Return whether this user agrees to use the offered model; ask on the terminal if that is unknown.

    Raises:
        UserError: it is not known, and there is no terminal to ask on.
    """
    return open_consent()(offer)

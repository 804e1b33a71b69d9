"""The conversation, independent of how it is written for the model, and how it is kept short."""

from typing import NamedTuple

MOST_CHARACTERS = 180000
FRESH = 4
PIECE = 500


class Call(NamedTuple):
    """An action that the model asks for; ``fault`` is its result where it cannot be read."""

    id: str
    name: str
    arguments: dict
    fault: str = ""


class Turn:
    """One reply of the model, what its calls gave, and what it was told beside that."""

    def __init__(self, message, said, calls):
        self.message = message
        self.said = said
        self.calls = calls
        self.results = []
        self.note = ""

    def size(self):
        asked = [str(call.arguments) for call in self.calls]
        return sum(map(len, [self.said, self.note, *asked, *self.results]))


class History:
    """All turns since the first message; the middle of old outputs is dropped when it grows too long."""

    def __init__(self, first, look=("ls", "")):
        self.first = first
        self.look = look
        self.turns = []
        self.forgotten = 0
        self.limit = MOST_CHARACTERS

    @property
    def opening(self):
        """The first message, and how many turns after it are gone."""
        gone = "\n\n[%d earlier replies and their results are left out here.]" % self.forgotten
        return self.first + (gone if self.forgotten else "")

    def size(self):
        return len(self.first) + len(self.look[1]) + sum(turn.size() for turn in self.turns)

    def fit(self):
        """Shorten what is too long, by so much at once that a provider's cache stays of use."""
        if self.size() > self.limit:
            self.shrink(self.limit * 6 // 10)

    def refused(self):
        """Make room after a refusal for length; whether there was anything to drop."""
        before = self.size()
        self.limit = before * 7 // 10
        self.shrink(self.limit)
        return self.size() < before

    def shrink(self, most):
        """Drop the middle of old outputs, the oldest first; then whole turns; then the middle of all outputs."""
        self.cut_results(self.turns[:-FRESH], most)
        while self.size() > most and len(self.turns) > FRESH:
            del self.turns[0]
            self.forgotten += 1
        self.cut_results(self.turns, most)

    def cut_results(self, turns, most):
        for turn in turns:
            if self.size() > most:
                turn.results = [cut_middle(text) for text in turn.results]
                turn.note = cut_middle(turn.note)


def cut_middle(text):
    """The beginning and the end of a long text."""
    left_out = len(text) - 2 * PIECE
    if left_out < PIECE:
        return text
    return "%s\n[%d characters left out]\n%s" % (text[:PIECE], left_out, text[-PIECE:])

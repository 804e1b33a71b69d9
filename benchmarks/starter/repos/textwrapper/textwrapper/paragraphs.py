"""Wrapping of running text."""

from .width import display_width, split_at


def _pieces(word, room):
    """Yield the word in pieces that fit, at least one character each."""
    while display_width(word) > room:
        head, tail = split_at(word, room)
        if not head:
            head, tail = word[0], word[1:]
        yield head
        word = tail
    if word:
        yield word


def wrap(text, width, first="", rest=""):
    """Return the lines of one paragraph, none wider than ``width``.

    ``first`` and ``rest`` are put in front of the first line and of the others, and count. Words that are
    wider than a line are broken.
    """
    room = width - max(display_width(first), display_width(rest))
    if room < 1:
        raise ValueError(f"no room for text in {width} cells")
    lines = []
    line = ""
    for word in text.split():
        for piece in _pieces(word, room):
            prefix = rest if lines else first
            longer = f"{line} {piece}" if line else piece
            if display_width(prefix) + display_width(longer) <= width:
                line = longer
            else:
                lines.append(prefix + line)
                line = piece
    if line:
        lines.append((rest if lines else first) + line)
    return lines


def justify(line, width):
    """Widen the blanks between words, the left ones first, until ``line`` is ``width`` wide."""
    words = line.split()
    if len(words) < 2:
        return line
    missing = max(width - display_width(" ".join(words)), 0)
    each, more = divmod(missing, len(words) - 1)
    parts = [word + " " * (1 + each + (index < more)) for index, word in enumerate(words[:-1])]
    return "".join(parts) + words[-1]


def split_paragraphs(text):
    """Return the paragraphs of a text, each a list of lines; blank lines lie between them."""
    paragraphs = []
    current = []
    for line in text.splitlines():
        if line.strip():
            current.append(line)
        elif current:
            paragraphs.append(current)
            current = []
    if current:
        paragraphs.append(current)
    return paragraphs


def reflow(text, width, justified=False):
    """Wrap all paragraphs of a text; indented paragraphs are kept as they are."""
    blocks = []
    for paragraph in split_paragraphs(text):
        if all(line.startswith("    ") for line in paragraph):
            blocks.append("\n".join(paragraph))
            continue
        lines = wrap(" ".join(paragraph), width)
        if justified:
            lines = [justify(line, width) for line in lines[:-1]] + lines[-1:]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)

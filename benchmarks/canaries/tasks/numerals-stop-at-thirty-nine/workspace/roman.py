"""Roman numerals."""

SIGNS = [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def numeral(number):
    """Return a number as a Roman numeral."""
    text = ""
    for value, sign in SIGNS:
        text += sign * (number // value)
        number %= value
    return text

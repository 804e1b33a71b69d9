"""Run with ``python3 -m unittest``; what the tests lay out is printed, to be looked at."""

RULER = "".join(str(cell % 10) for cell in range(1, 73))


def show(lines):
    """Print lines below a ruler and return them."""
    print()
    print(RULER)
    for line in lines:
        print(line)
    return lines

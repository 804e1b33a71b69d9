"""Numbers and quantities as text."""


def plain_number(value):
    """Return an int if the value is whole, else a float."""
    return int(value) if value == int(value) else float(value)


def fixed(quantity, places=2):
    """Print with exactly that many decimal places."""
    rounded = quantity.round(places)
    return f"{float(rounded.amount):.{places}f} {quantity.unit}"


def table(rows, unit, places=1):
    """Print names and quantities in two aligned columns, all in one unit."""
    if not rows:
        return ""
    amounts = [fixed(amount.to(unit), places) for _, amount in rows]
    left = max(len(name) for name, _ in rows)
    right = max(len(amount) for amount in amounts)
    lines = [f"{name.ljust(left)}  {amount.rjust(right)}" for (name, _), amount in zip(rows, amounts)]
    return "\n".join(lines)


def spoken(quantity, *units):
    """Print the parts that are not zero, as in ``1 h 5 s``; nothing is ``0`` of the last unit."""
    parts = quantity.parts(*units)
    pieces = [f"{amount} {unit}" for amount, unit in zip(parts, units) if amount]
    return " ".join(pieces) or f"0 {units[-1]}"

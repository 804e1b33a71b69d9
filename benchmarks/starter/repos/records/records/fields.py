"""The fields of a record: each one turns text into a value and back."""

import logging
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from .errors import FieldError, LayoutError

log = logging.getLogger(__name__)


class Field:
    """A named part of a line.

    Args:
        name: The name of the value.
        width: How many bytes the field takes.
        required: Whether the field must not be blank; else a blank field has the value ``default``.
        default: The value of a blank field.
    """

    #: Whether the text stands at the right end of the field.
    to_the_right = False
    fill = " "

    def __init__(self, name, width, required=False, default=None):
        if width < 1:
            raise LayoutError(f"{name}: a width of {width} is not possible")
        self.name = name
        self.width = width
        self.required = required
        self.default = default

    def parse(self, text):
        """Return the value of a field's text."""
        log.debug("%r reads %r", self, text)
        text = text.strip()
        if text:
            return self.read(text)
        if self.required:
            raise self.error("must not be blank")
        return self.default

    def format(self, value, encoding="utf-8"):
        """Return the text of a value, padded to the width; ``None`` is blank."""
        if value is None:
            if self.required:
                raise self.error("must not be blank")
            return " " * self.width
        text = self.write(value)
        log.debug("%r writes %r", self, text)
        gap = self.width - len(text.encode(encoding))
        if gap < 0:
            raise self.error(f"{text!r} is longer than {self.width}")
        if self.to_the_right:
            return self.fill * gap + text
        return text + self.fill * gap

    def read(self, text):
        """Return the value of a text that is not blank."""
        raise NotImplementedError

    def write(self, value):
        """Return the text of a value, not padded."""
        return str(value)

    def error(self, reason):
        return FieldError(self.name, reason)

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.width})"


class Text(Field):
    """Any text; blanks at the ends do not belong to it."""

    def read(self, text):
        return text


class Integer(Field):
    """A whole number, within bounds if there are some."""

    to_the_right = True

    def __init__(self, name, width, lowest=None, highest=None, **options):
        super().__init__(name, width, **options)
        self.lowest = lowest
        self.highest = highest

    def read(self, text):
        try:
            value = int(text)
        except ValueError as error:
            raise self.error(f"{text!r} is not a whole number") from error
        return self.check(value)

    def check(self, value):
        """Return the value if it is within the bounds."""
        if self.lowest is not None and value < self.lowest:
            raise self.error(f"{value} is below {self.lowest}")
        if self.highest is not None and value > self.highest:
            raise self.error(f"{value} is above {self.highest}")
        return value

    def write(self, value):
        return str(self.check(value))


class Amount(Field):
    """A decimal number without a point: the last ``places`` digits stand behind it."""

    to_the_right = True

    def __init__(self, name, width, places=2, **options):
        super().__init__(name, width, **options)
        self.places = places

    def read(self, text):
        try:
            value = Decimal(text)
        except InvalidOperation as error:
            raise self.error(f"{text!r} is not an amount") from error
        if not value.is_finite() or value != value.to_integral_value():
            raise self.error(f"{text!r} has a point or is no number")
        return value.scaleb(-self.places)

    def write(self, value):
        try:
            digits = Decimal(value).scaleb(self.places)
        except InvalidOperation as error:
            raise self.error(f"{value!r} is not an amount") from error
        if digits != digits.to_integral_value():
            raise self.error(f"{value} has more than {self.places} places")
        return str(int(digits))


class Date(Field):
    """A day, written in a format of ``strftime``."""

    def __init__(self, name, width=8, style="%Y%m%d", **options):
        super().__init__(name, width, **options)
        self.style = style

    def read(self, text):
        try:
            return datetime.strptime(text, self.style).date()
        except ValueError as error:
            raise self.error(f"{text!r} is not a day") from error

    def write(self, value):
        return value.strftime(self.style)


class Stamp(Field):
    """A moment: local time to the minute, then how many minutes that is ahead of UTC.

    ``202401311200+060`` is noon in Paris in winter. The value is in UTC; it is written with the offset given to the
    field.
    """

    _STYLE = "%Y%m%d%H%M"

    def __init__(self, name, offset_min=0, **options):
        super().__init__(name, 16, **options)
        self.offset_min = offset_min

    def read(self, text):
        if len(text) != 16 or text[12] not in "+-":
            raise self.error(f"{text!r} is not a moment")
        try:
            local = datetime.strptime(text[:12], self._STYLE)
            ahead = timedelta(minutes=int(text[12:]))
        except ValueError as error:
            raise self.error(f"{text!r} is not a moment") from error
        return (local - ahead).replace(tzinfo=timezone.utc)

    def write(self, value):
        local = value.astimezone(timezone(timedelta(minutes=self.offset_min)))
        return local.strftime(self._STYLE) + f"{self.offset_min:+04d}"


class Choice(Field):
    """One of several codes; the value is what the code stands for."""

    def __init__(self, name, width, codes, **options):
        super().__init__(name, width, **options)
        self.codes = dict(codes)

    def read(self, text):
        if text not in self.codes:
            raise self.error(f"{text!r} is none of {', '.join(sorted(self.codes))}")
        return self.codes[text]

    def write(self, value):
        for code, meaning in self.codes.items():
            if meaning == value:
                return code
        raise self.error(f"no code stands for {value!r}")


class Flag(Choice):
    """Yes or no, written ``Y`` and ``N``."""

    def __init__(self, name, **options):
        super().__init__(name, 1, {"Y": True, "N": False}, **options)

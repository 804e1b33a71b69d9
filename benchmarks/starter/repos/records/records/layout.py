"""Layouts: which fields a line has, one after the other."""

import logging

from .errors import FieldError, LayoutError
from .record import Record

log = logging.getLogger(__name__)


class Layout:
    """The fields of a line; all widths are in bytes of the encoding."""

    def __init__(self, fields, encoding="utf-8"):
        self.fields = tuple(fields)
        self.encoding = encoding
        names = [field.name for field in self.fields]
        for name in names:
            if names.count(name) > 1:
                raise LayoutError(f"two fields are named {name!r}")

    @property
    def width(self):
        return sum(field.width for field in self.fields)

    def offsets(self):
        """Return the first byte of each field, by name."""
        found, position = {}, 0
        for field in self.fields:
            found[field.name] = position
            position += field.width
        return found

    def parse(self, data, line=0):
        """Return the record of one line of bytes; a line may end early, as if blanks followed.

        Raises:
            FieldError: A field's text is not allowed.
            LayoutError: The line is too long, or cannot be decoded.
        """
        data = data.rstrip(b"\r\n")
        if len(data.rstrip(b" ")) > self.width:
            raise LayoutError(f"{len(data)} bytes do not fit into {self.width}")
        values, position = {}, 0
        for field in self.fields:
            text = self._decode(data[position : position + field.width], field)
            values[field.name] = field.parse(text)
            log.debug("line %d bytes %d+%d %s=%r", line, position, field.width, field.name, values[field.name])
            position += field.width
        return Record(values, line)

    def _decode(self, part, field):
        try:
            return part.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise FieldError(field.name, f"{part!r} is not {self.encoding}") from error

    def format(self, values):
        """Return the line of bytes for a record or a plain mapping; a missing value is blank."""
        unknown = set(values) - {field.name for field in self.fields}
        if unknown:
            raise LayoutError(f"no such field: {', '.join(sorted(unknown))}")
        texts = [field.format(values.get(field.name), self.encoding) for field in self.fields]
        return "".join(texts).encode(self.encoding)

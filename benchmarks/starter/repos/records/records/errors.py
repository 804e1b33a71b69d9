"""What can go wrong with records."""


class RecordError(Exception):
    """Any fault of a record or of a layout."""


class LayoutError(RecordError, ValueError):
    """A layout is impossible, or a line does not fit it."""


class FieldError(RecordError, ValueError):
    """The text or the value of a field is not allowed.

    Attributes:
        field: The field's name.
        reason: What is wrong, without the name.
    """

    def __init__(self, field, reason):
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason

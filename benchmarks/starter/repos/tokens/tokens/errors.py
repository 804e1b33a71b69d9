"""What can be wrong with an expression."""


class ExpressionError(Exception):
    """Any fault of an expression."""


class ParseError(ExpressionError):
    """The text is not an expression."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} at {position}")
        self.position = position


class EvaluationError(ExpressionError):
    """The expression has no value for the names that were given."""

"""What can go wrong with a template."""


class TemplateError(Exception):
    """Any fault of a template or of the values given to it."""

    def __init__(self, message, line=None):
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class TemplateSyntaxError(TemplateError, ValueError):
    """The text of a template cannot be understood."""


class UndefinedName(TemplateError, LookupError):
    """A template uses a name that nobody gave."""


class TemplateNotFound(TemplateError, LookupError):
    """No template of that name is loaded."""

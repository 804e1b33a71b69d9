"""A tokenizer, parser and evaluator for small expressions."""

from .errors import EvaluationError, ExpressionError, ParseError
from .evaluate import FUNCTIONS, Evaluator, evaluate, names_in
from .lexer import Token, tokenize
from .parser import parse
from .printing import unparse

__all__ = [
    "FUNCTIONS",
    "EvaluationError",
    "Evaluator",
    "ExpressionError",
    "ParseError",
    "Token",
    "evaluate",
    "names_in",
    "parse",
    "tokenize",
    "unparse",
]

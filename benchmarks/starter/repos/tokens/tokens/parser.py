"""Tokens to a tree, by recursive descent: one method a level of precedence."""

from __future__ import annotations

from typing import Callable

from .errors import ParseError
from .lexer import Token, tokenize, unquote
from .nodes import Binary, Call, Choice, Comparison, Constant, Name, Node, Unary

_CONSTANTS = {"true": True, "false": False, "none": None}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_SUMS = ("+", "-")
_PRODUCTS = ("*", "/", "//", "%")


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokenize(text))
        self._index = 0

    @property
    def _current(self) -> Token:
        return self._tokens[self._index]

    def _advance(self) -> Token:
        token = self._current
        self._index += 1
        return token

    def _accept(self, *texts: str) -> bool:
        """Step over the current token when it is one of these words or operators."""
        if self._current.kind in ("operator", "keyword") and self._current.text in texts:
            self._index += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            found = self._current.text or "the end"
            raise ParseError(f"expected {text!r}, found {found!r}", self._current.position)

    def parse(self) -> Node:
        node = self._choice()
        if self._current.kind != "end":
            raise ParseError(f"unexpected {self._current.text!r}", self._current.position)
        return node

    def _choice(self) -> Node:
        node = self._either()
        if not self._accept("if"):
            return node
        test = self._either()
        self._expect("else")
        return Choice(test, node, self._choice())

    def _either(self) -> Node:
        return self._left_to_right(("or",), self._both)

    def _both(self) -> Node:
        return self._left_to_right(("and",), self._negation)

    def _negation(self) -> Node:
        if self._accept("not"):
            return Unary("not", self._negation())
        return self._comparison()

    def _comparison(self) -> Node:
        first = self._sum()
        rest = []
        while self._current.kind == "operator" and self._current.text in _COMPARISONS:
            operator = self._advance().text
            rest.append((operator, self._sum()))
        return Comparison(first, tuple(rest)) if rest else first

    def _sum(self) -> Node:
        return self._left_to_right(_SUMS, self._product)

    def _product(self) -> Node:
        return self._left_to_right(_PRODUCTS, self._sign)

    def _left_to_right(self, operators: tuple[str, ...], operand: Callable[[], Node]) -> Node:
        node = operand()
        while self._current.kind in ("operator", "keyword") and self._current.text in operators:
            operator = self._advance().text
            node = Binary(operator, node, operand())
        return node

    def _sign(self) -> Node:
        if self._accept("-"):
            return Unary("-", self._sign())
        if self._accept("+"):
            return self._sign()
        return self._power()

    def _power(self) -> Node:
        base = self._atom()
        if self._accept("^"):
            return Binary("^", base, self._sign())
        return base

    def _atom(self) -> Node:
        if self._accept("("):
            node = self._choice()
            self._expect(")")
            return node
        token = self._advance()
        if token.kind == "number":
            return Constant(int(token.text) if token.text.isdigit() else float(token.text))
        if token.kind == "text":
            return Constant(unquote(token.text))
        if token.kind == "keyword" and token.text in _CONSTANTS:
            return Constant(_CONSTANTS[token.text])
        if token.kind == "name":
            if self._accept("("):
                return Call(token.text, self._arguments())
            return Name(tuple(token.text.split(".")))
        raise ParseError(f"unexpected {token.text or 'end'!r}", token.position)

    def _arguments(self) -> tuple[Node, ...]:
        """The arguments of a call, up to and with the closing parenthesis."""
        arguments: list[Node] = []
        if self._accept(")"):
            return ()
        while True:
            arguments.append(self._choice())
            if self._accept(")"):
                return tuple(arguments)
            self._expect(",")


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        ParseError: The text is not an expression.
    """
    return _Parser(text).parse()

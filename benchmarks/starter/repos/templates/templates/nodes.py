"""The tree of a template: each node knows how to read itself and how to render itself."""

import logging

from .errors import TemplateError, TemplateSyntaxError
from .expressions import parse_condition, parse_operand, split_words
from .lexer import OUTPUT, TEXT, tokenize

log = logging.getLogger(__name__)


class Text:
    """Plain text, printed as it is."""

    def __init__(self, text):
        self.text = text

    def render(self, scope, engine, blocks):
        return self.text


class Output:
    """The value of an expression, printed."""

    def __init__(self, operand, line):
        self.operand = operand
        self.line = line

    def render(self, scope, engine, blocks):
        value = self.operand.value(scope)
        log.debug("line %d: output %s -> %r", self.line, self.operand.word, value)
        return "" if value is None else str(value)


class Body:
    """Nodes that are rendered one after the other."""

    def __init__(self, children):
        self.children = children

    def render(self, scope, engine, blocks):
        return "".join(child.render(scope, engine, blocks) for child in self.children)


class If:
    """The first branch whose condition holds, or the ``else`` branch."""

    def __init__(self, branches, otherwise):
        self.branches = branches
        self.otherwise = otherwise

    def render(self, scope, engine, blocks):
        for condition, body in self.branches:
            if condition.holds(scope):
                return body.render(scope, engine, blocks)
        if self.otherwise is not None:
            return self.otherwise.render(scope, engine, blocks)
        return ""


class For:
    """A body rendered once for each item; ``loop`` tells where the loop is."""

    def __init__(self, names, operand, body, otherwise):
        self.names = names
        self.operand = operand
        self.body = body
        self.otherwise = otherwise

    def render(self, scope, engine, blocks):
        items = list(self.operand.value(scope) or ())
        log.debug("for %s: %d items", ", ".join(self.names), len(items))
        if not items:
            return self.otherwise.render(scope, engine, blocks) if self.otherwise else ""
        pieces = []
        for index, item in enumerate(items):
            scope.push(loop=self._position(index, len(items)))
            try:
                self._bind(scope, item)
                pieces.append(self.body.render(scope, engine, blocks))
            finally:
                scope.pop()
        return "".join(pieces)

    def _bind(self, scope, item):
        if len(self.names) == 1:
            scope.set(self.names[0], item)
            return
        values = list(item)
        if len(values) != len(self.names):
            raise TemplateError(f"{len(values)} values for {len(self.names)} names")
        for name, value in zip(self.names, values):
            scope.set(name, value)

    @staticmethod
    def _position(index, size):
        return {
            "index": index + 1,
            "index0": index,
            "first": index == 0,
            "last": index == size - 1,
            "left": size - index - 1,
            "length": size,
        }


class Set:
    """Bind a name; inside a loop an outer name is rebound, so that sums can be kept."""

    def __init__(self, name, operand):
        self.name = name
        self.operand = operand

    def render(self, scope, engine, blocks):
        scope.assign(self.name, self.operand.value(scope))
        return ""


class Include:
    """Another template, rendered with the names visible here; its own names stay inside."""

    def __init__(self, operand):
        self.operand = operand

    def render(self, scope, engine, blocks):
        name = self.operand.value(scope)
        log.debug("include %s", name)
        return engine.render_named(name, scope.flat())


class Block:
    """A part that a child template may replace."""

    def __init__(self, name, body):
        self.name = name
        self.body = body

    def render(self, scope, engine, blocks):
        body = blocks.get(self.name, self.body)
        scope.push()
        try:
            return body.render(scope, engine, blocks)
        finally:
            scope.pop()


class Template:
    """A parsed template: its body, its blocks and the name of its parent, if any."""

    def __init__(self, body, blocks, parent):
        self.body = body
        self.blocks = blocks
        self.parent = parent


class Parser:
    """Build the tree of one template from its tokens."""

    def __init__(self, source):
        self._tokens = tokenize(source)
        self._index = 0
        self._blocks = {}
        self._parent = None

    def parse(self):
        """Return the whole template."""
        body, tag = self._body()
        if tag is not None:
            raise TemplateSyntaxError(f"unexpected {tag[0]!r}", self._line())
        return Template(body, self._blocks, self._parent)

    def _line(self):
        return self._tokens[self._index - 1].line if self._index else 1

    def _body(self, *ends):
        """Read nodes up to a tag named in ``ends``; return them and that tag's words."""
        children = []
        while self._index < len(self._tokens):
            token = self._tokens[self._index]
            self._index += 1
            if token.kind == TEXT:
                children.append(Text(token.text))
            elif token.kind == OUTPUT:
                children.append(Output(parse_operand(split_words(token.text, token.line), token.line), token.line))
            else:
                words = split_words(token.text, token.line) or [""]
                if words[0] in ends:
                    return Body(children), words
                children.append(self._tag(words, token.line))
        if ends:
            raise TemplateSyntaxError(f"missing {ends[-1]!r}", self._line())
        return Body(children), None

    def _tag(self, words, line):
        log.debug("line %d: tag %s", line, " ".join(words))
        read = getattr(self, f"_read_{words[0]}", None)
        if read is None:
            raise TemplateSyntaxError(f"unknown tag {words[0]!r}", line)
        return read(words[1:], line)

    def _read_if(self, words, line):
        branches, otherwise = [], None
        condition = parse_condition(words, line)
        body, tag = self._body("elif", "else", "end")
        branches.append((condition, body))
        while tag[0] == "elif":
            condition = parse_condition(tag[1:], self._line())
            body, tag = self._body("elif", "else", "end")
            branches.append((condition, body))
        if tag[0] == "else":
            otherwise, _ = self._body("end")
        return If(branches, otherwise)

    def _read_for(self, words, line):
        if "in" not in words:
            raise TemplateSyntaxError("'for' needs 'in'", line)
        split = words.index("in")
        names = [word for word in words[:split] if word != ","]
        if not names:
            raise TemplateSyntaxError("'for' needs a name", line)
        operand = parse_operand(words[split + 1 :], line)
        body, tag = self._body("else", "end")
        otherwise = self._body("end")[0] if tag[0] == "else" else None
        return For(names, operand, body, otherwise)

    def _read_set(self, words, line):
        if len(words) < 3 or words[1] != "to":
            raise TemplateSyntaxError("write 'set name to value'", line)
        return Set(words[0], parse_operand(words[2:], line))

    def _read_include(self, words, line):
        return Include(parse_operand(words, line))

    def _read_block(self, words, line):
        if len(words) != 1:
            raise TemplateSyntaxError("'block' needs one name", line)
        if words[0] in self._blocks:
            raise TemplateSyntaxError(f"block {words[0]!r} is there twice", line)
        self._blocks[words[0]] = None
        body, _ = self._body("end")
        self._blocks[words[0]] = body
        return Block(words[0], body)

    def _read_extends(self, words, line):
        self._parent = parse_operand(words, line)
        return Text("")

"""Splits Swift source into tokens, as far as the mutations need it."""

import re
from dataclasses import dataclass

OPENING, CLOSING = "([{", ")]}"
_OPERATOR = re.compile(r"[/=\-+!*%<>&|^~?]+|\.\.[.<]")
_NUMBER = re.compile(r"0x[0-9A-Fa-f_]+|0b[01_]+|0o[0-7_]+|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"`?[A-Za-z_$][A-Za-z0-9_]*`?")


@dataclass
class Token:
    # "word", "number", "text", "operator" or "mark".
    kind: str
    text: str
    start: int
    end: int
    line: int
    # For an operator: "infix", "prefix" or "postfix", by the rule of the language about white space.
    fixity: str = ""
    # For an opening mark, the index of the token that closes it, and the reverse.
    partner: int = -1

    def __eq__(self, other):
        return self.text == other if isinstance(other, str) else self is other


def _end_of_text(source, start):
    """The end of the string literal at `start`, which may have #s, three quotes, and interpolations."""
    hashes = re.match("#*", source[start:]).group()
    quotes = '"""' if source.startswith(hashes + '"""', start) else '"'
    position = start + len(hashes) + len(quotes)
    while not source.startswith(quotes + hashes, position):
        if source.startswith("\\" + hashes + "(", position):
            position = _end_of_parentheses(source, position + 1 + len(hashes))
        elif source[position] == "\\" and not hashes:
            position += 2
        else:
            position += 1
    return position + len(quotes) + len(hashes)


def _end_of_parentheses(source, start):
    depth, position = 0, start
    while True:
        if source[position] == '"':
            position = _end_of_text(source, position)
            continue
        depth += {"(": 1, ")": -1}.get(source[position], 0)
        position += 1
        if depth == 0:
            return position


def _end_of_comment(source, start):
    depth, position = 1, start + 2
    while depth:
        if source.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif source.startswith("*/", position):
            depth, position = depth - 1, position + 2
        else:
            position += 1
    return position


def tokens(source):
    found, position, line, open_marks = [], 0, 1, []

    def add(kind, end):
        nonlocal position, line
        found.append(Token(kind, source[position:end], position, end, line))
        line += source.count("\n", position, end)
        position = end

    while position < len(source):
        character = source[position]
        if character.isspace():
            line += character == "\n"
            position += 1
        elif source.startswith("//", position):
            position = source.find("\n", position) % (len(source) + 1)
        elif source.startswith("/*", position):
            end = _end_of_comment(source, position)
            line += source.count("\n", position, end)
            position = end
        elif re.match(r'#*"', source[position:position + 8]):
            add("text", _end_of_text(source, position))
        elif match := _WORD.match(source, position):
            add("word", match.end())
        elif match := _NUMBER.match(source, position):
            # `x.0` is a member, and `0..<n` and `0.method` are no fractions.
            add("number", match.end())
        elif match := _OPERATOR.match(source, position):
            add("operator", match.end())
            token = found[-1]
            before, after = source[token.start - 1], source[token.end:token.end + 1]
            left = before.isspace() or before in "([{,;:"
            right = after.isspace() or after in ")]},;:." or not after
            token.fixity = "infix" if left == right else "prefix" if left else "postfix"
        else:
            add("mark", position + 1)
            if character in OPENING:
                open_marks.append(len(found) - 1)
            elif character in CLOSING:
                other = open_marks.pop()
                found[-1].partner, found[other].partner = other, len(found) - 1
    return found

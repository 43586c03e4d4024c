"""Finds functions in Swift sources by type and name, as far as the mutations need it: by braces, in formatted code."""

import re
from dataclasses import dataclass

PAIRS = {"(": ")", "[": "]", "{": "}"}
_TYPE = re.compile(r"(?<![\w.`])(struct|enum|class|actor|extension|protocol)\s+([A-Z][\w.]*)")
_FUNCTION = re.compile(r"(?<![\w.`])(?:func\s+(\w+)|(init)[?!]?(?=\s*[<(])|(deinit)(?=\s*\{)|(subscript)(?=\s*[<(])"
                       r"|var\s+(\w+)\s*:[^={}\n]+?(?=\s\{))")


class Impossible(Exception):
    """A function is not there, is there more than once, or does not have what a mutation changes."""


def _end_of_text(source, start):
    """The end of the string literal at `start`, with its #s, three quotes and interpolations."""
    hashes = re.match("#*", source[start:]).group()
    quotes = '"""' if source.startswith(hashes + '"""', start) else '"'
    position = start + len(hashes) + len(quotes)
    while not source.startswith(quotes + hashes, position):
        if source.startswith("\\" + hashes + "(", position):
            depth, position = 1, position + 2 + len(hashes)
            while depth:
                if source[position] == '"':
                    position = _end_of_text(source, position)
                    continue
                depth += {"(": 1, ")": -1}.get(source[position], 0)
                position += 1
        elif source[position] == "\\" and not hashes:
            position += 2
        else:
            position += 1
    return position + len(quotes) + len(hashes)


def masked(source):
    """The source with blanks for comments and underscores for texts, so that every offset stays the same."""
    parts, position = [], 0
    for match in re.finditer(r'//[^\n]*|/\*.*?\*/|#*"', source, re.S):
        if match.start() < position:
            continue
        parts.append(source[position:match.start()])
        is_comment = match.group().startswith("/")
        position = match.end() if is_comment else _end_of_text(source, match.start())
        text = source[match.start():position]
        parts.append(re.sub(r"[^\n]", " " if is_comment else "_", text))
    return "".join(parts) + source[position:]


def closing(mask, start):
    """The offset after the mark that closes the one at `start`."""
    depth, ends = 0, PAIRS[mask[start]]
    for position in range(start, len(mask)):
        depth += (mask[position] == mask[start]) - (mask[position] == ends)
        if depth == 0:
            return position + 1
    raise Impossible("a brace is not closed")


def clauses(mask, start, end):
    """The ranges between the commas from `start` to `end` that are in no parentheses."""
    found, depth, first = [], 0, start
    for position in range(start, end):
        depth += (mask[position] in "([{") - (mask[position] in ")]}")
        if mask[position] == "," and depth == 0:
            found.append((first, position))
            first = position + 1
    return found + [(first, end)]


@dataclass
class Function:
    path: object
    # The types that the function is in and its name, such as `VaultSession.commit`, and the same with its labels.
    name: str
    full_name: str
    returns: bool
    # The offsets of what is between the braces.
    start: int
    end: int


def _labels(mask, start):
    inner = mask[start + 1:closing(mask, start) - 1]
    # A clause that begins with another character is the rest of a generic type.
    labels = [re.match(r"\s*(?:@\w+\s+)*(\w+)", inner[a:b]) for a, b in clauses(inner, 0, len(inner))]
    return "".join(label.group(1) + ":" for label in labels if label)


def functions(path, source):
    mask = masked(source)
    types = []
    for match in _TYPE.finditer(mask):
        brace = mask.find("{", match.end())
        if brace >= 0:
            types.append((match.end(), closing(mask, brace), match.group(1), match.group(2)))
    found, inside = [], 0
    for match in _FUNCTION.finditer(mask):
        if match.start() < inside:
            continue
        around = [t for t in types if t[0] <= match.start() < t[1]]
        if around and around[-1][2] == "protocol":
            continue
        base, labels, position = next(filter(None, match.groups())), "", match.end()
        if not match.group(5) and base != "deinit":
            position = mask.find("(", match.end())
            labels = f"({_labels(mask, position)})"
            position = closing(mask, position)
        brace = mask.find("{", position)
        signature = mask[position:brace]
        if brace < 0 or "}" in signature or re.search(r"\b(func|let|var|case|struct|init)\b", signature):
            continue
        end = closing(mask, brace)
        name = ".".join([t[3] for t in around] + [base])
        found.append(Function(path, name, name + labels, bool(match.group(5)) or "->" in signature, brace + 1, end - 1))
        inside = end
    return found

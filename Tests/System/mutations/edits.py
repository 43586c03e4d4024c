"""Small changes to the body of a function. Each function here returns a change: from the body's text to a new text.

Calls, guards and conditions are counted from 1 in the order of the body. A change raises `Impossible` if the body does
not have what it changes.
"""

import re

from swift_source import Impossible, clauses, closing, masked


def _nth(pattern, mask, nth, what):
    found = list(re.finditer(pattern, mask))
    if len(found) < nth:
        raise Impossible(f"{what} is there {len(found)} times, and the change is to number {nth}")
    return found[nth - 1]


def _call(text, name, nth):
    """The call of `name` with its receiver, `try` and trailing closure: its start, its parenthesis and its end."""
    mask = masked(text)
    match = _nth(r"(?<!\w)" + re.escape(name) + r"(?=\(|\s\{)", mask, nth, f"the call of {name}")
    start = match.start()
    while start and (mask[start - 1].isalnum() or mask[start - 1] in "_.?"):
        start -= 1
    words = re.search(r"(?:(?:_ = )|(?:\btry )|(?:\btry\? ))*$", mask[:start])
    opening = match.end()
    if mask[opening] == "(":
        end = closing(mask, opening)
    else:
        opening, end = None, match.end()
    trailing = re.match(r"\s\{", mask[end:])
    # A brace after a condition is not a closure.
    line = mask[mask.rfind("\n", 0, start) + 1:start]
    if trailing and not re.search(r"\b(if|while|guard|for|switch)\b", line):
        end = closing(mask, end + 1)
    return words.start(), opening, end


def omit(name, nth=1):
    """Leaves a call out."""
    return instead(name, "", nth)


def instead(name, replacement, nth=1):
    """Puts `replacement` in the place of a call."""
    def change(text):
        start, _, end = _call(text, name, nth)
        return text[:start] + replacement + text[end:]
    return change


def before(name, statement, nth=1):
    """Adds a statement before the line of a call."""
    def change(text):
        start = text.rfind("\n", 0, _call(text, name, nth)[0]) + 1
        return text[:start] + statement + "\n" + text[start:]
    return change


def argument(name, number, replacement, nth=1):
    """Replaces an argument of a call; without a replacement, leaves it out."""
    def change(text):
        _, opening, _ = _call(text, name, nth)
        mask = masked(text)
        ranges = clauses(mask, opening + 1, closing(mask, opening) - 1)
        if len(ranges) < number:
            raise Impossible(f"the call of {name} has {len(ranges)} arguments")
        arguments = [text[a:b] for a, b in ranges]
        arguments[number - 1:number] = [replacement] if replacement else []
        return text[:opening + 1] + ",".join(arguments) + text[ranges[-1][1]:]
    return change


def _condition(text, keyword, nth, clause, replacement):
    mask = masked(text)
    match = _nth(rf"(?<![#\w]){keyword}\b", mask, nth, keyword)
    depth, end = 0, match.end()
    while depth or not re.match(r"\selse\b" if keyword == "guard" else r"\s\{", mask[end:]):
        depth += (mask[end] in "([{") - (mask[end] in ")]}")
        end += 1
    ranges = clauses(mask, match.end(), end)
    if len(ranges) < clause:
        raise Impossible(f"{keyword} {nth} has {len(ranges)} conditions")
    start, end = ranges[clause - 1]
    if re.match(r"\s*(let|var|case)\b", mask[start:end]):
        raise Impossible(f"condition {clause} of {keyword} {nth} declares a name")
    return text[:start] + " " + replacement + text[end:]


def passes(nth=1, clause=1):
    """Lets a condition of a guard hold always."""
    return lambda text: _condition(text, "guard", nth, clause, "true")


def fails(nth=1, clause=1):
    """Lets a condition of a guard hold never."""
    return lambda text: _condition(text, "guard", nth, clause, "false")


def never(nth=1, clause=1):
    """Lets a condition of an `if` hold never."""
    return lambda text: _condition(text, "if", nth, clause, "false")


def always(nth=1, clause=1):
    """Lets a condition of an `if` hold always."""
    return lambda text: _condition(text, "if", nth, clause, "true")


def body(replacement):
    """Replaces the whole body."""
    return lambda text: f" {replacement} "


def first(statement):
    """Adds a statement at the start."""
    return lambda text: f"\n{statement}{text}" if text.startswith("\n") else f"\n{statement}\nreturn {text}"


def operator(old, new, nth=1):
    """Replaces an operator, a number or a name."""
    def change(text):
        edge = r"(?<!\w)%s(?!\w)" if old[0].isalnum() else r"(?<=\s)%s(?=\s)"
        match = _nth(edge % re.escape(old), masked(text), nth, old)
        return text[:match.start()] + new + text[match.end():]
    return change

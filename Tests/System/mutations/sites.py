"""What a mutation is, and how a file is written with all of its mutations in it, each switched off.

A mutation is switched on by its number when the program runs. An operator becomes an operator of its own, whose name is
made of box-drawing characters and which has the precedence of the old one, so that no expression has to be parsed. Other
code is put into a call, or into an `if`. Neither adds a line, so that the compiler's messages name the lines of the
source.
"""

from dataclasses import dataclass, field


@dataclass
class Mutation:
    kind: str
    file: str
    line: int
    before: str
    after: str
    text: str
    number: int = 0
    # The mutation without its place: stays the same when lines are inserted elsewhere.
    key: str = ""


@dataclass
class Site:
    """A place in the source that one edit changes, for one mutation or two."""
    start: int
    end: int
    first_line: int
    last_line: int
    mutations: list
    # Called with the numbers of the mutations; returns what replaces the source, or what surrounds it.
    edit: object
    wraps: bool
    # For an operator: how to declare it, called with its name and the numbers.
    declaration: object = None
    # The column in the mutated source, set when the file is written.
    column: int = 0
    in_member: tuple = (0, 0)
    assigned: set = field(default_factory=set)


def operator_name(number):
    """A name for an operator that no source has."""
    name = ""
    while number or not name:
        number, digit = divmod(number, 128)
        name += chr(0x2500 + digit)
    return "─" + name


def write(source, sites, first_operator):
    """Returns the mutated source, and the declarations of its operators. Sets the sites' columns."""
    edits, declarations = [], []
    for order, site in enumerate(sites):
        numbers = [m.number for m in site.mutations]
        if site.declaration:
            name = operator_name(first_operator + order)
            declarations += site.declaration(name, numbers)
            edits.append((site.start, 2, 0, order, name, site.end, site))
        elif site.wraps:
            opening, closing = site.edit(numbers)
            # What only precedes a place comes before everything that begins there.
            size = -10**9 if not closing else -site.end
            edits.append((site.start, 1, size, order, opening, site.start, site))
            if closing:
                edits.append((site.end, 0, -site.start, -order, closing, site.end, None))
        else:
            edits.append((site.start, 2, 0, order, site.edit(numbers), site.end, site))
    edits.sort(key=lambda edit: edit[:4])
    parts, position = [], 0
    for start, _, _, _, text, end, site in edits:
        parts += [source[position:start], text]
        position = max(position, end)
        if site:
            before = "".join(parts[:-1])
            site.column = len(before) - before.rfind("\n")
    return "".join(parts) + source[position:], declarations

#!/usr/bin/env python3
"""The folders of a module have an order: a file uses only types of its own folder and of the folders before it.

usage: folders_in_order.py < ORDER     a line for each module: its name, and its folders in order

A dot stands for the files beside the folders. Fails with a line for each use of a type that a later folder declares, and
if the order does not list each folder. Comments and texts are no uses; what is inserted into a text is one.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("mutations")))
from swift_source import masked

# A private type cannot be used in another file.
START = r"^(?P<indent>  |)(?:(?:@\w+|public|package|internal|final|indirect|nonisolated)\s+)*"
TYPE = re.compile(START + r"(?:(?:struct|class|enum|protocol|actor|typealias)\s+(?P<name>\w+)|extension\s+(?P<extended>[\w.]+))"
                  r"|^\}", re.M)


def declared(code):
    """The types at the top level, and those in an extension there, as `Extended.Name`."""
    extended = None
    for match in TYPE.finditer(code):
        if not match["name"]:
            extended = match["extended"]
        elif not match["indent"]:
            yield match["name"]
        elif extended:
            yield f"{extended}.{match['name']}"


def used(source, code):
    inserted = [m.group(1) for m in re.finditer(r'\\#*\(([^"\n]*)', source) if code[m.start()] == "_"]
    for name in re.findall(r"(?<![\w.])[A-Z]\w*(?:\.[A-Z]\w*)?", " ".join([code] + inserted)):
        yield name
        yield name.split(".")[0]


def violations(module, *order):
    root = Path("Sources", module)
    sources = {path: path.read_text("utf-8") for path in sorted(root.rglob("*.swift"))}
    codes = {path: masked(source) for path, source in sources.items()}
    folders = {path: path.relative_to(root).parts[0] if path.parent != root else "." for path in sources}
    if unknown := set(folders.values()) ^ set(order):
        yield f"{root}: not both a folder and in the order: {' '.join(sorted(unknown))}"
        return
    # Of a name in several folders, the first one counts.
    homes = {name: folders[path] for path in sorted(sources, key=lambda path: -order.index(folders[path]))
             for name in declared(codes[path])}
    for path, source in sources.items():
        later = order[order.index(folders[path]) + 1:]
        for name in sorted(set(used(source, codes[path]))):
            if homes.get(name) in later:
                yield f"{path} uses {name} of the later folder {homes[name]}"


found = [line for module in sys.stdin if module.strip() for line in violations(*module.split())]
for line in found:
    print(line)
sys.exit(bool(found))

#!/usr/bin/env python3
"""Makes the tables of the worked examples in VaultMerging.md, and checks that the page has it.

Exit status: 0 if each line is on the page, 1 otherwise.
"""

import os
import sys
from itertools import permutations

import vault_changes as c
import vault_described as d
import vault_merging as m
import vault_reader as r
import vault_records as p
from vault_writer import seeded_random
from vector_bases import NOW, key_slot, put, remove, vault

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Sources/CofferVault/Vault.docc/VaultMerging.md")
KEY, LIMIT, NAMES = bytes([7]) * 32, {"versions": 1, "days": 0}, ("api", "db")
random = seeded_random("coffer vectors 1: the example of a merge")


def read(file):
    return r.read_vault(file, r.Key(KEY))


def copied(*tail):
    """A copy of the vault, whose first commit is the same in each."""
    made = vault("merge example", slots=[key_slot(key=KEY)], base={"sequence": 1}, history=LIMIT)
    return read(d.NewFile({**made, "tail": [[stored("api", "a1", 1), stored("db", "d1", 1)], *tail]}).file)


def stored(name, value, seconds):
    return put(name, value, service="example", created=NOW, modified=NOW + seconds * 1000)


def merged(ours, theirs, ancestor=None, undoes=False):
    times = c.judged({"now": NOW + 60_000}, ours, theirs)
    return read(m.merged_file(ours, theirs, ancestor, times, random, undoes)[0])


def erased(vault):
    """The file after a removal that keeps no earlier version."""
    name = {"service": "example", "account": "db"}
    gone = {"changes": [remove("db", "example", NOW + 2000, keeps_nothing=True)], "purge": [name]}
    return read(c.rewritten(vault, {**c.judged({"now": NOW + 2000}, vault), **gone}, random)[0])


def shown(entries):
    """The records of one secret: sequence, value and fields of merges."""
    words = []
    for record, value in ((one.record, one.value.decode()) for one in entries):
        origin, conflict = record.field(p.ORIGIN), record.field(p.CONFLICT)
        fields = f", origin {origin[0]}:{origin[1].hex()[:4]}" if origin else ""
        words.append(f"{record.sequence} put {value}{fields}" + (f", conflict {conflict}" if conflict else ""))
    return "; ".join(words) or "none"


def row(name, vault):
    of = {found[0].record.account: found for found in vault.entries.values()}
    states = " ".join(f"{number}:{tag.hex()[:4]}" for number, tag in c.changes_of(vault))
    cells = name, vault.root.sequence, *(shown(of.get(one, [])) for one in NAMES), states
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def outcome(vault):
    """What does not depend on the order of merges: names, values and which are in conflict."""
    entries = [one for found in vault.entries.values() for one in found]
    return sorted((one.record.account, one.value, one.record.field(p.CONFLICT) is not None) for one in entries)


def main():
    common = copied()
    ann, ben, cem = copied([stored("api", "a2", 10)]), copied([stored("api", "a3", 20)]), erased(common)
    files = {"common": common, "Ann": ann, "Ben": ben, "Cem": cem, "M1": merged(ann, ben)}
    files["M2"] = merged(files["M1"], cem)
    later = copied([stored("api", "a3", 20)], [stored("db", "d2", 30)])
    files |= {"Ben 2": later, "taken": merged(common, later, ben)}
    files["undone"] = merged(files["taken"], ben, later, True)
    assert not m.merged(common, later, ben)[4].is_successor
    lines = [row(*one) for one in files.items()]
    every = [merged(merged(one, two), three) for one, two, three in permutations((ann, ben, cem))]
    assert all(outcome(one) == outcome(files["M2"]) for one in every)
    print(*lines, sep="\n")
    with open(PAGE, encoding="utf-8") as stream:
        page = stream.read()
    return 0 if all(line in page for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())

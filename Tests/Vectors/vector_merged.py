"""A file that a merge wrote. Random histories of other implementations begin with it too."""

import copy

import vault_described as d
import vault_merging as m
import vault_reader as r
from vault_writer import seeded_random
from vector_bases import NOW, key_slot, put, remove, vault
from vector_outcome import outcome_of
from vector_suite import text_of

SERVICE = "tests"
KEY = bytes([7]) * 32
NAME = "merged.vault"
HISTORY = {"versions": 2, "days": 0}


def stored(number, value):
    return put(f"name {number}", bytes([value]), service=SERVICE)


def removed(number):
    return remove(f"name {number}", service=SERVICE)


COMMON = [stored(0, 0), stored(1, 10), stored(1, 11), stored(1, 12), stored(2, 20), stored(3, 30)]
# The same times on both sides, where the other side's change wins if neither is a removal.
OURS = [stored(0, 1), stored(1, 13), removed(2), removed(3), stored(4, 40)]
THEIRS = [stored(0, 2), stored(0, 3), removed(1), stored(2, 21), removed(3), stored(5, 50)]

# Of each name the present value, and the earlier ones, newest first.
CONTENT = {
    # 1 lost to 3 in the merge, and is kept beside the two versions of the limit.
    "name 0": ([3], [[1], [2], [0]]),
    "name 1": ([13], [[12], [11]]),
    "name 2": ([21], [[20]]),
    "name 3": (None, [[30]]),
    "name 4": ([40], []),
    "name 5": ([50], []),
}


def file():
    """The bytes of the file."""
    common = vault("merged", slots=[key_slot(key=KEY)], base={"sequence": 1}, tail=[COMMON], history=HISTORY)
    sides = []
    for changes in (OURS, THEIRS):
        description = copy.deepcopy(common)
        description["tail"].append(changes)
        sides.append(r.read_vault(d.NewFile(description).file, r.Key(KEY)))
    times = {"now": NOW, "time": NOW}
    return m.merged_file(*sides, None, times, seeded_random("coffer vectors 1: a merge"))[0]


def add(suite, files):
    files[NAME] = file()
    entry = {
        "name": "ok-merged",
        "comment": "two copies of a vault, merged: a value that lost is kept beside the limit",
        "vault": NAME,
        "credential": text_of({"key_text": KEY}),
    }
    entry["expect"], _ = outcome_of(files[NAME], entry)
    assert content(entry["expect"]) == CONTENT, content(entry["expect"])
    suite.entries.append(entry)


def content(expect):
    found = {}
    for item in expect["items"]:
        found[item["account"]] = ([*bytes.fromhex(item["value"])], [])
    for version in expect["versions"]:
        found.setdefault(version["account"], (None, []))[1].append([*bytes.fromhex(version["value"])])
    return found

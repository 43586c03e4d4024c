"""Commits to files in a private directory and reads them back. Part of `generate.py --check`."""

import copy
import os
import tempfile

import coffer_vault
import vault_format as f
import vault_reader as r
import vault_writer as w
from vector_bases import BASES, CI_KEY, PASSPHRASE, put
from vector_suite import replayed

KEY = r.Key(CI_KEY)


def read(path, credential=KEY):
    with open(path, "rb") as stream:
        return r.read_vault(stream.read(), credential)


def items(vault):
    """The items of a vault in the form of `replayed`, with whole values."""
    return coffer_vault.contents(vault)["items"]


def whole(description):
    """The expected items, with whole values."""
    found = replayed(description, len(description["tail"]))
    for item in found:
        changes = [one.get("put") for transaction in description["tail"] for one in transaction]
        last = [
            one
            for one in description["base"]["items"] + [one for one in changes if one]
            if (one["service"], one["account"]) == (item["service"], item["account"])
        ][-1]
        for name in ("value_length", "value_blake2b_256"):
            item.pop(name, None)
        item["value"] = last["value"]
    return found


def failures():
    """Yields a line for each failure."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("small", "values", "identifiers", "metadata", "tail-only", "emptied"):
            yield from commits(os.path.join(folder, name), BASES[name][0], name)
        yield from after_crash(os.path.join(folder, "crash"))
        yield from read_only(os.path.join(folder, "read-only"))


def commits(path, description, name):
    """Commits each transaction of a description to a vault without a tail."""
    w.write_new_file(path, w.NewFile(copy.deepcopy(description) | {"tail": []}).file)
    for number, transaction in enumerate(description["tail"], start=1):
        checkpoint = w.commit(path, KEY, transaction)
        vault = read(path)
        if vault.recovered or vault.checkpoint != checkpoint or vault.current != number % 2:
            yield f"commit {number} of {name} is not the current state"
        if items(vault) != whole(description | {"tail": description["tail"][:number]}):
            yield f"commit {number} of {name} does not read back"
    if os.stat(path).st_mode & 0o777 != 0o600:
        yield f"{name} is not private"


def after_crash(path):
    """A commit to a file with a torn slot and bytes after the end replaces the slot and truncates the file."""
    description = BASES["small"][0]
    made = w.NewFile(copy.deepcopy(description))
    file = bytearray(made.file) + bytes(1000)
    file[made.parts["commit slot 1"][0]] ^= 1
    w.write_new_file(path, bytes(file))
    if not read(path).recovered:
        yield "a torn slot is not reported"
    w.commit(path, r.Passphrase(PASSPHRASE.encode()), [put("after", "the crash")])
    vault = read(path)
    if vault.recovered or vault.current != 1 or vault.state.sequence != made.sequence:
        yield "a commit after a crash does not take the torn slot's place"
    if os.path.getsize(path) != vault.state.end:
        yield "a commit does not cut off what was after the end"
    if not any(item["account"] == "after" for item in items(vault)):
        yield "a commit after a crash does not read back"


def read_only(path):
    """A vault that may only be read is not changed."""
    description = copy.deepcopy(BASES["created"][0]) | {"read_only_compatible": 4}
    file = w.NewFile(description).file
    w.write_new_file(path, file)
    try:
        w.commit(path, KEY, [put("one", "1")])
        yield "a vault with an unknown read-only-compatible bit is written"
    except f.Refused as refused:
        with open(path, "rb") as stream:
            if refused.outcome != "read-only" or stream.read() != file:
                yield "a vault with an unknown read-only-compatible bit is not refused, or is changed"

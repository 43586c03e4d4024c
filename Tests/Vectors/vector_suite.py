"""The tools that make a case: a base vault with one damage, or with one fault under valid seals."""

import copy
import json
import struct

import vault_described as d
import vault_format as f
import vault_identities as identities
from vector_bases import BASES, NOW
from vector_expect import expected

TAMPERED = f.TAMPERED


# Faults: changes of an encoded part


def patch(offset, data):
    """Replaces the bytes at `offset`. A negative offset counts from the end."""

    def apply(value):
        start = offset if offset >= 0 else len(value) + offset
        return value[:start] + data + value[start + len(data) :]

    return apply


def number(offset, code, new):
    return patch(offset, struct.pack("<" + code, new))


def plus(offset, code, difference):
    """Adds to a number, modulo the size of its type."""

    def apply(value):
        size = struct.calcsize("<" + code)
        start = offset if offset >= 0 else len(value) + offset
        old = int.from_bytes(value[start : start + size], "little")
        new = (old + difference) % (1 << 8 * size)
        return value[:start] + new.to_bytes(size, "little") + value[start + size :]

    return apply


def flip(offset, mask=1):
    def apply(value):
        start = offset if offset >= 0 else len(value) + offset
        return value[:start] + bytes([value[start] ^ mask]) + value[start + 1 :]

    return apply


def following(data):
    return lambda value: value + data


def constant(data):
    return lambda value: data


def each(*faults):
    def apply(value):
        for fault in faults:
            value = fault(value)
        return value

    return apply


# Edits: the difference between the file of a base vault and a damaged file


def runs(old, new, start):
    """The edits between two byte strings of equal length. Changes that are closer than 8 bytes are one edit."""
    edits, position = [], 0
    changed = [index for index in range(len(old)) if old[index] != new[index]] if old != new else []
    while position < len(changed):
        last = position
        while last + 1 < len(changed) and changed[last + 1] - changed[last] <= 8:
            last += 1
        first, end = changed[position], changed[last] + 1
        edits.append({"offset": start + first, "delete": end - first, "insert": new[first:end].hex()})
        position = last + 1
    return edits


def difference(old, new, boundary):
    """The edits that turn `old` into `new`. Bytes before `boundary` are compared at the same offsets."""
    edits = runs(old[:boundary], new[:boundary], 0)
    old, new = old[boundary:], new[boundary:]
    if len(old) == len(new):
        return edits + runs(old, new, boundary)
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    end = next((index for index in range(shorter - start) if old[-1 - index] != new[-1 - index]), shorter - start)
    insert = new[start : len(new) - end].hex()
    moved = [{"offset": boundary + start, "delete": len(old) - end - start, "insert": insert}]
    rest = {"offset": boundary + shorter, "delete": len(old) - shorter, "insert": new[shorter:].hex()}
    in_place = runs(old[:shorter], new[:shorter], boundary) + [rest]
    return edits + min(moved, in_place, key=lambda one: len(json.dumps(one)))


def edited(file, entry):
    """The file of an entry: the edits at offsets of the base vault's file, and then the truncation."""
    result, position = b"", 0
    for edit in entry.get("edits", []):
        assert position <= edit["offset"] and edit["offset"] + edit["delete"] <= len(file), entry["name"]
        result += file[position : edit["offset"]] + bytes.fromhex(edit["insert"])
        position = edit["offset"] + edit["delete"]
    result += file[position:]
    return result[: entry.get("truncate", len(result))]


def text_of(credential):
    if "key_text" in credential:
        return {"key_text": f.key_text(credential["key_text"]).decode()}
    if "hybrid_identity" in credential:
        return {"identity": identities.encode(identities.HYBRID_IDENTITY, credential["hybrid_identity"])}
    if "identity" in credential:
        return {"identity": identities.encode(identities.IDENTITY, credential["identity"])}
    return credential


class Suite:
    """Collects the entries of vectors.json."""

    def __init__(self):
        self.entries, self.descriptions = [], {}
        self.made = {name: d.NewFile(description) for name, (description, _) in BASES.items()}

    def files(self):
        return {name + ".vault": made.file for name, made in self.made.items()}

    def place(self, base, part, offset=0):
        """The offset of a part's byte in the file of a base vault. A negative offset counts from the end of the part."""
        start, length = self.made[base].parts[part]
        return start + offset if offset >= 0 else start + length + offset

    def end(self, base, part):
        return sum(self.made[base].parts[part])

    # Damage, which takes no key

    def damage(self, name, comment, base, outcome, *edits, **more):
        """`edits` are (offset, deleted bytes, inserted data)."""
        edits = [{"offset": at, "delete": count, "insert": data.hex()} for at, count, data in sorted(edits)]
        self.add(name, comment, base, outcome, edits, self.made[base], BASES[base][0], **more)

    def flipped(self, name, comment, base, outcome, part, offset, mask=1, **more):
        at = self.place(base, part, offset)
        self.damage(name, comment, base, outcome, (at, 1, bytes([self.made[base].file[at] ^ mask])), **more)

    def overwritten(self, name, comment, base, outcome, part, offset, data, **more):
        self.damage(name, comment, base, outcome, (self.place(base, part, offset), len(data), data), **more)

    def truncated(self, name, comment, base, outcome, size, **more):
        self.add(name, comment, base, outcome, [], self.made[base], BASES[base][0], truncate=size, **more)

    def intact(self, name, comment, base, outcome=f.OK, **more):
        self.damage(name, comment, base, outcome, **more)

    # Faults under valid seals, which take the keys

    def resealed(self, name, comment, base, outcome, faults=None, change=None, after=None, **more):
        """Writes the base vault again with `faults` in the named parts, or from a changed description."""
        description = copy.deepcopy(BASES[base][0])
        if change:
            change(description)
        unused = set(faults or {})

        def tamper(part, value):
            unused.discard(part)
            return faults[part](value) if faults and part in faults else value

        made = d.NewFile(description, tamper=tamper)
        assert not unused, f"{name}: there is no {unused}"
        file = after(made) if after else made.file
        old = self.made[base].file
        edits = difference(old, file, len(self.made[base].header) + f.PAGES)
        assert edits, f"{name}: nothing is changed"
        self.add(name, comment, base, outcome, edits, made, description, **more)
        assert edited(old, self.entries[-1]) == file, name

    # Entries

    def add(
        self,
        name,
        comment,
        base,
        outcome,
        edits,
        made,
        description,
        truncate=None,
        credential=None,
        transactions=None,
        reading=None,
        limits=None,
        now=NOW,
    ):
        entry = {"name": name, "comment": comment, "vault": base + ".vault"}
        if edits:
            entry["edits"] = edits
        if truncate is not None:
            entry["truncate"] = truncate
        entry["credential"] = text_of(credential or BASES[base][1])
        if limits:
            entry["limits"] = limits
        if reading:
            entry["reading"] = reading
        entry["expect"] = {"outcome": outcome}
        if outcome in (f.OK, f.RECOVERED):
            state = made.steps[-1 if transactions is None else transactions]
            if description.get("history", {}).get("days"):
                entry["now"] = now
            contents = expected(description, made.steps.index(state), now)
            entry["expect"] |= {"sequence": state.sequence, "pin": made.pin(state)} | contents
        assert all(entry["name"] != other["name"] for other in self.entries), name
        self.entries.append(entry)
        self.descriptions[name] = description

    def json(self):
        return "[\n" + ",\n".join(json.dumps(entry) for entry in self.entries) + "\n]\n"

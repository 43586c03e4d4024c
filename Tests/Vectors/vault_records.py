"""The vault file, format 1: fields, records, frames, blocks and the root. Bytes to values and back."""

import struct
from dataclasses import dataclass

import vault_format as f
from vault_format import require

# Fields

FIELD, LENGTH = struct.Struct("<HI"), struct.Struct("<I")
# Bits of a type.
CRITICAL, DROPPED, KEPT = 0x8000, 0x4000, 0x2000
MAXIMUM_UNKNOWN = 65_536
LABEL, EXPIRY, ATTRIBUTES, SINCE, CONFLICT, TWIN, KEEPS_NOTHING, KEPT_NOTHING, ORIGIN = range(1, 10)  # of a record
HISTORY, LINEAGE, FORMER_SLOTS, TAKEN = 1, 2, 3, 4  # of the root
KNOWN = {
    "put": (LABEL, EXPIRY, ATTRIBUTES, SINCE, CONFLICT, TWIN, KEEPS_NOTHING, KEPT_NOTHING, ORIGIN),
    "remove": (KEEPS_NOTHING, KEPT_NOTHING, ORIGIN),
    "root": (HISTORY, LINEAGE, FORMER_SLOTS, TAKEN),
}


def encode_fields(fields):
    body = b"".join(FIELD.pack(kind, len(data)) + data for kind, data in fields)
    return LENGTH.pack(len(body)) + body


def rewritten_fields(fields, holder):
    """The fields that a rewrite copies."""
    return tuple((kind, data) for kind, data in fields if kind in KNOWN[holder] or not kind & DROPPED)


def fields_kept(record):
    """The fields that a secret keeps when it is stored again."""
    return tuple((kind, data) for kind, data in record.fields if kind not in KNOWN["put"] and kind & KEPT)


def fields_moved(record):
    """The fields that a value takes along to another name."""
    return tuple((kind, data) for kind, data in record.fields if kind not in KNOWN["put"] and not kind & DROPPED)


def parse_fields(cursor, holder):
    """The (type, bytes) pairs of a field list. `holder` is a key of `KNOWN`."""
    what = f"the fields of {cursor.what}"
    inner = f.Cursor(cursor.take(cursor.u32()), what)
    fields, last = [], 0
    while inner.position < len(inner.data):
        kind, length = inner.u16(), inner.u32()
        require(kind > last, f"the types of {what} do not ascend from 1", "F1")
        fields.append((kind, inner.take(length)))
        last = kind
    for kind, _ in fields:
        known = kind < CRITICAL or kind in KNOWN[holder]
        require(known, f"{what} include the critical type {kind:#x}", "F2", outcome=f.UNSUPPORTED_VERSION)
    unknown = sum(FIELD.size + len(data) for kind, data in fields if kind not in KNOWN[holder])
    require(unknown <= MAXIMUM_UNKNOWN, f"the unknown fields of {what} have {unknown} bytes", "F13")
    return tuple(fields)


def parse_label(data):
    return f.Cursor(data, "a label").utf8(len(data), 0, 1024, "F3")


def parse_time(data):
    cursor = f.Cursor(data, "a time")
    time = cursor.i64()
    cursor.finish()
    return time


def encode_attributes(attributes):
    return b"".join(f.encode_text(text) for pair in attributes for text in pair)


def parse_attributes(data):
    cursor, attributes = f.Cursor(data, "the attributes"), []
    while not attributes or cursor.position < len(data):
        attributes.append((cursor.text(1, 128, "F4"), cursor.text(0, 1024, "F4")))
    require(len(attributes) <= 32, f"there are {len(attributes)} attributes", "F4")
    names = [name.encode("utf-8") for name, _ in attributes]
    require(all(a < b for a, b in zip(names, names[1:])), "the attributes are not in ascending order", "F4")
    return tuple(attributes)


def parse_sequence(data):
    """The sequence of the put beside which this one stands since a merge."""
    cursor = f.Cursor(data, "the sequence of another record")
    sequence = cursor.sequence()
    cursor.finish()
    return sequence


def parse_mark(data):
    require(not data, "a field that is a mark has bytes")
    return True


def parse_birth(data):
    """The sequence that a change had first, and the tag of the lowest state that had it."""
    cursor = f.Cursor(data, "an origin")
    birth = cursor.sequence(), cursor.take(16)
    cursor.finish()
    return birth


RECORD_FIELDS = {
    LABEL: parse_label,
    EXPIRY: parse_time,
    ATTRIBUTES: parse_attributes,
    SINCE: parse_time,
    CONFLICT: parse_sequence,
    TWIN: parse_sequence,
    KEEPS_NOTHING: parse_mark,
    KEPT_NOTHING: parse_mark,
    ORIGIN: parse_birth,
}


# Records

PUT, REMOVE = 1, 2
SMALLEST_VALUE, LARGEST_VALUE = 72, f.MAXIMUM_VALUE + 32 + f.SEAL_OVERHEAD  # sealed


@dataclass(frozen=True)
class Record:
    """A change to one secret. `fields` holds every field as it is in the file, the unknown ones too."""

    kind: int
    lookup_id: bytes
    sequence: int
    time: int  # when the value was stored, or the secret removed
    service: str
    account: str
    created: int = 0  # of a put
    value_length: int = 0  # sealed, of a put
    value_tag: bytes = b""  # of a put
    fields: tuple = ()

    @property
    def is_put(self):
        return self.kind == PUT

    def field(self, kind, default=None):
        return next((RECORD_FIELDS[kind](data) for one, data in self.fields if one == kind), default)

    @property
    def names(self):
        """What secrets are sorted by."""
        return self.service.encode("utf-8"), self.account.encode("utf-8")

    @property
    def position(self):
        return self.lookup_id, self.sequence

    def body(self):
        """The record without its lookup id and its sequence."""
        put = struct.pack("<qI16s", self.created, self.value_length, self.value_tag) if self.is_put else b""
        names = f.encode_text(self.service) + f.encode_text(self.account)
        return struct.pack("<Bq", self.kind, self.time) + put + names + encode_fields(self.fields)

    @classmethod
    def parse(cls, identifier, sequence, cursor, lookup_key):
        """The record whose body is next in `cursor`."""
        kind = cursor.u8()
        require(kind in (PUT, REMOVE), f"a record is of kind {kind}", "R1")
        time = cursor.i64()
        created, value_length, value_tag = 0, 0, b""
        if kind == PUT:
            created, value_length, value_tag = cursor.i64(), cursor.u32(), cursor.take(16)
            require(value_length <= LARGEST_VALUE, f"a sealed value has {value_length} bytes", "V2")
        service, account = cursor.text(1, 1024, "R2"), cursor.text(1, 1024, "R2")
        require(identifier == lookup_id(lookup_key, service, account), "a lookup id is not that of its names", "R3")
        holder = "put" if kind == PUT else "remove"
        fields = parse_fields(cursor, holder)
        for one, data in fields:
            if one in KNOWN[holder]:
                RECORD_FIELDS[one](data)
        return cls(kind, identifier, sequence, time, service, account, created, value_length, value_tag, fields)


def lookup_id(lookup_key, service, account):
    service, account = service.encode("utf-8"), account.encode("utf-8")
    message = struct.pack("<I", len(service)) + service + struct.pack("<I", len(account)) + account
    return f.blake2b(128, message, lookup_key)


# Frames

POSITION = struct.Struct("<16sQ")


def frame_associated(file_id, offset, length, previous_tag):
    return file_id + struct.pack("<Q", offset) + length + previous_tag


def value_associated(vault_id, identifier, sequence):
    return vault_id + identifier + struct.pack("<Q", sequence)


def encode_metadata(record):
    return POSITION.pack(*record.position) + record.body()


def parse_metadata(data, lookup_key):
    """The record of a frame."""
    cursor = f.Cursor(data, "the metadata of a frame")
    record = Record.parse(cursor.take(16), cursor.sequence(), cursor, lookup_key)
    cursor.finish()
    return record


# Base

ROOT = struct.Struct("<Q32sQ16sII")
ENTRY = struct.Struct("<16sQQII16s")
DIRECTORY_ENTRY = struct.Struct("<16sQI")
PLACE = struct.Struct("<Q")
FORMER_SLOT = struct.Struct("<16sBB32sqQqB")
PAIR = struct.Struct("<Q16s")
MAXIMUM_VERSIONS, MAXIMUM_DAYS, MAXIMUM_LINEAGE, MAXIMUM_PAIRS, MAXIMUM_FORMER = 1000, 36_500, 64, 2048, 256


@dataclass(frozen=True)
class HistoryLimit:
    versions: int = 0
    days: int = 0  # 0: no limit of age
    sequence: int = 1  # of the root that has it first
    origin: tuple = None  # as of a record

    def encode(self):
        birth = PAIR.pack(*self.origin) if self.origin else b""
        return struct.pack("<HHQ", self.versions, self.days, self.sequence) + birth

    @property
    def size(self):
        return self.versions, self.days

    @classmethod
    def parse(cls, data, root_sequence):
        cursor = f.Cursor(data, "the history limit")
        versions, days, sequence = cursor.u16(), cursor.u16(), cursor.sequence()
        origin = parse_birth(cursor.take(PAIR.size)) if cursor.position < len(data) else None
        cursor.finish()
        require(versions <= MAXIMUM_VERSIONS, f"the history limit is {versions} versions", "F7")
        require(days <= MAXIMUM_DAYS, f"the history limit is {days} days", "F7")
        require(1 <= sequence <= root_sequence, "the history limit was set after the last rewrite", "F7")
        return cls(versions, days, sequence, origin)


@dataclass(frozen=True)
class FormerSlot:
    """A key slot that was removed."""

    slot_id: bytes
    type: int
    is_trace: int  # 1 if the master key has been the same since, otherwise 0
    recipient: bytes  # its first 32 bytes, or zeros
    created: int
    sequence: int  # of the removal
    time: int  # of the removal
    label: str

    def encode(self):
        label = self.label.encode("utf-8")
        numbers = self.created, self.sequence, self.time, len(label)
        return FORMER_SLOT.pack(self.slot_id, self.type, self.is_trace, self.recipient, *numbers) + label

    @classmethod
    def parse(cls, cursor, last, root_sequence):
        slot_id, kind, is_trace, recipient = cursor.take(16), cursor.u8(), cursor.u8(), cursor.take(32)
        created, sequence, time = cursor.i64(), cursor.sequence(), cursor.i64()
        require(is_trace <= 1, "a former key slot is a trace or not", "F12")
        require(sequence <= root_sequence, "a key slot was removed after the last rewrite", "F10")
        require(last <= sequence, "the former key slots are out of order", "F10")
        label = cursor.utf8(cursor.u8(), 0, 64, "K2")
        return cls(slot_id, kind, is_trace, recipient, created, sequence, time, label)


def parse_former_slots(data, root_sequence):
    cursor, slots = f.Cursor(data, "the former key slots"), []
    while not slots or cursor.position < len(data):
        slots.append(FormerSlot.parse(cursor, slots[-1].sequence if slots else 0, root_sequence))
    require(len(slots) <= MAXIMUM_FORMER, f"there are {len(slots)} former key slots", "F14")
    return tuple(slots)


def parse_taken(data):
    """The changes that merges took without the others of their branch: the first sequence and state of each."""
    cursor, taken = f.Cursor(data, "the changes that were taken"), []
    while not taken or cursor.position < len(data):
        taken.append((cursor.sequence(), cursor.take(16)))
    is_right = len(taken) <= MAXIMUM_PAIRS and all(a < b for a, b in zip(taken, taken[1:]))
    require(is_right, "the changes that were taken are too many, or do not ascend", "F15")
    return tuple(taken)


@dataclass(frozen=True)
class Entry:
    """A block, as the root names it."""

    first_id: bytes
    first_sequence: int
    offset: int
    length: int  # sealed
    items: int
    tag: bytes

    def encode(self):
        return ENTRY.pack(self.first_id, self.first_sequence, self.offset, self.length, self.items, self.tag)

    @property
    def first(self):
        return self.first_id, self.first_sequence

    @property
    def end(self):
        return self.offset + self.length


def parse_entries(cursor, count):
    entries = tuple(
        Entry(cursor.take(16), cursor.sequence(), cursor.u64(), cursor.u32(), cursor.u32(), cursor.take(16))
        for _ in range(count)
    )
    cursor.finish()
    for entry in entries:
        longest = f.SEAL_OVERHEAD + f.MAXIMUM_BLOCK
        require(f.SEAL_OVERHEAD < entry.length <= longest, f"an entry of {cursor.what} is too short or too long", "B4")
    return entries


@dataclass(frozen=True)
class Root:
    sequence: int
    lookup_key: bytes
    floor: int
    recent_tag: bytes
    recent_length: int
    fields: tuple
    entries: tuple
    history: HistoryLimit = HistoryLimit()
    lineage: tuple = ()  # the subkeys 7 of the former master keys, the newest first
    former: tuple = ()  # the key slots that were removed, the latest last
    taken: tuple = ()  # the changes that merges took without the others of their branch

    def encode(self):
        recent = self.floor, self.recent_tag, self.recent_length
        head = ROOT.pack(self.sequence, self.lookup_key, *recent, len(self.entries))
        return head + encode_fields(self.fields) + b"".join(entry.encode() for entry in self.entries)

    @classmethod
    def parse(cls, data, lineage_key, vault_id):
        cursor = f.Cursor(data, "the root")
        sequence, lookup_key, floor = cursor.sequence(), cursor.take(32), cursor.sequence()
        recent_tag, recent_length, count = cursor.take(16), cursor.u32(), cursor.u32()
        require(floor <= sequence, "the floor is above the root", "B12")
        pairs, rest = divmod(recent_length - f.SEAL_OVERHEAD, PAIR.size) if recent_length else (0, 0)
        require(rest == 0 and 0 <= pairs <= MAXIMUM_PAIRS, "the recent changes have a wrong length", "B11")
        require((pairs == 0) == (recent_length == 0), "the recent changes are sealed and empty", "B11")
        require((pairs == 0) == (floor == sequence), "the floor is not that of the recent changes", "B12")
        require(pairs or not any(recent_tag), "there are no recent changes, and a tag of them", "B12")
        fields = parse_fields(cursor, "root")
        known = dict(fields)
        history = HistoryLimit.parse(known[HISTORY], sequence) if HISTORY in known else HistoryLimit()
        lineage = open_lineage(lineage_key, vault_id, known[LINEAGE]) if LINEAGE in known else ()
        former = parse_former_slots(known[FORMER_SLOTS], sequence) if FORMER_SLOTS in known else ()
        taken = parse_taken(known[TAKEN]) if TAKEN in known else ()
        entries = parse_entries(cursor, count)
        recent = floor, recent_tag, recent_length
        return cls(sequence, lookup_key, *recent, fields, entries, history, lineage, former, taken)


def parse_recent(data, root):
    """The (sequence, tag) pairs of the changes before the root, ascending."""
    cursor = f.Cursor(data, "the recent changes")
    pairs = tuple((cursor.sequence(), cursor.take(16)) for _ in range(len(data) // PAIR.size))
    cursor.finish()
    require(all(a < b for a, b in zip(pairs, pairs[1:])), "the recent changes do not ascend", "B13")
    within = root.floor <= pairs[0][0] and pairs[-1][0] < root.sequence
    require(within, "a recent change is below the floor, or not before the root", "B13")
    return pairs


def lineage_associated(vault_id):
    return b"coffer-lineage" + vault_id


def open_lineage(lineage_key, vault_id, sealed):
    """The keys. Without a `lineage_key` they stay sealed, and only their number is checked."""
    count, rest = divmod(len(sealed) - f.SEAL_OVERHEAD, 32)
    require(rest == 0 and 1 <= count <= MAXIMUM_LINEAGE, f"the sealed lineage has {len(sealed)} bytes", "F9")
    if not lineage_key:
        return ()
    keys = f.open_seal(lineage_key, lineage_associated(vault_id), sealed, "the lineage")
    return tuple(keys[32 * index :][:32] for index in range(count))


def part_associated(part, file_id, offset):
    """What the seal of a block, the recent changes or the root is bound to."""
    return b"coffer-" + part + file_id + struct.pack("<Q", offset)

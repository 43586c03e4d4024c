"""The vault file, format 1: fields, records, frames, blocks and the root. Bytes to values and back."""

import struct
from dataclasses import dataclass

import vault_format as f
from vault_format import require

# Fields

CRITICAL = 0x8000
LABEL, EXPIRY, ATTRIBUTES = 1, 2, 3  # of a put
HISTORY, LINEAGE = 1, 2  # of the root
KNOWN = {"put": (LABEL, EXPIRY, ATTRIBUTES), "remove": (), "root": (HISTORY, LINEAGE)}


def encode_fields(fields):
    body = b"".join(struct.pack("<HH", kind, len(data)) + data for kind, data in fields)
    return struct.pack("<H", len(body)) + body


def parse_fields(cursor, holder):
    """The (type, bytes) pairs of a field list. `holder` is a key of `KNOWN`."""
    what = f"the fields of {cursor.what}"
    inner = f.Cursor(cursor.take(cursor.u16()), what)
    fields, last = [], 0
    while inner.position < len(inner.data):
        kind, length = inner.u16(), inner.u16()
        require(kind > last, f"the types of {what} do not ascend from 1")
        fields.append((kind, inner.take(length)))
        last = kind
    for kind, _ in fields:
        known = kind < CRITICAL or kind in KNOWN[holder]
        require(known, f"{what} include the critical type {kind:#x}", f.UNSUPPORTED_VERSION)
    return tuple(fields)


def parse_label(data):
    return f.Cursor(data, "a label").utf8(len(data), 0, 1024)


def parse_expiry(data):
    cursor = f.Cursor(data, "an expiry")
    expires = cursor.i64()
    cursor.finish()
    return expires


def encode_attributes(attributes):
    return b"".join(f.encode_text(text) for pair in attributes for text in pair)


def parse_attributes(data):
    cursor, attributes = f.Cursor(data, "the attributes"), []
    while not attributes or cursor.position < len(data):
        attributes.append((cursor.text(1, 128), cursor.text(0, 1024)))
    require(len(attributes) <= 32, f"there are {len(attributes)} attributes")
    names = [name.encode("utf-8") for name, _ in attributes]
    require(all(a < b for a, b in zip(names, names[1:])), "the attributes are not in ascending order")
    return tuple(attributes)


PUT_FIELDS = {LABEL: parse_label, EXPIRY: parse_expiry, ATTRIBUTES: parse_attributes}


# Records

PUT, REMOVE = 1, 2


@dataclass(frozen=True)
class Record:
    """A change to one secret. `fields` holds every field as it is in the file, the unknown ones too."""

    kind: int
    lookup_id: bytes
    sequence: int
    time: int  # when the value was stored, or the secret removed
    service: str
    account: str
    value_tag: bytes = b""  # of a put
    created: int = 0  # of a put
    fields: tuple = ()

    @property
    def is_put(self):
        return self.kind == PUT

    def field(self, kind, default=None):
        return next((PUT_FIELDS[kind](data) for one, data in self.fields if one == kind), default)

    @property
    def names(self):
        """What secrets are sorted by."""
        return self.service.encode("utf-8"), self.account.encode("utf-8")

    def encode(self):
        head = struct.pack("<B16sQq", self.kind, self.lookup_id, self.sequence, self.time)
        put = self.value_tag + struct.pack("<q", self.created) if self.is_put else b""
        return head + f.encode_text(self.service) + f.encode_text(self.account) + put + encode_fields(self.fields)

    @classmethod
    def parse(cls, cursor, lookup_key):
        kind = cursor.u8()
        require(kind in (PUT, REMOVE), f"a record is of kind {kind}")
        identifier, sequence, time = cursor.take(16), cursor.u64(), cursor.i64()
        service, account = cursor.text(1, 1024), cursor.text(1, 1024)
        require(identifier == lookup_id(lookup_key, service, account), "a lookup id is not that of its names")
        value_tag, created = (cursor.take(16), cursor.i64()) if kind == PUT else (b"", 0)
        fields = parse_fields(cursor, "put" if kind == PUT else "remove")
        for one, data in fields if kind == PUT else ():
            if one in PUT_FIELDS:
                PUT_FIELDS[one](data)
        return cls(kind, identifier, sequence, time, service, account, value_tag, created, fields)


def lookup_id(lookup_key, service, account):
    service, account = service.encode("utf-8"), account.encode("utf-8")
    message = struct.pack("<I", len(service)) + service + struct.pack("<I", len(account)) + account
    return f.blake2b(128, message, lookup_key)


# Frames

LENGTH = struct.Struct("<I")
SMALLEST_VALUE, LARGEST_VALUE = 72, f.MAXIMUM_VALUE + 32 + f.SEAL_OVERHEAD  # sealed


def masked_length(length_key, nonce, length):
    """The length of a frame's padded metadata, masked or unmasked: the same operation."""
    mask = f.blake2b(128, nonce, length_key)
    return bytes(a ^ b for a, b in zip(length, mask))


def metadata_associated(file_id, offset, length, previous_tag):
    return file_id + struct.pack("<Q", offset) + length + previous_tag


def value_associated(vault_id, identifier, sequence):
    return vault_id + identifier + struct.pack("<Q", sequence)


def parse_metadata(data, lookup_key):
    """The length of a frame's sealed value, and its record."""
    cursor = f.Cursor(data, "the metadata of a frame")
    length = cursor.u32()
    record = Record.parse(cursor, lookup_key)
    cursor.finish()
    check_value_length(record, length)
    return length, record


def check_value_length(record, length):
    if record.is_put:
        require(SMALLEST_VALUE <= length <= LARGEST_VALUE, f"a sealed value has {length} bytes")
        require((length - f.SEAL_OVERHEAD) % f.PADDING == 0, f"a sealed value has {length} bytes")
    else:
        require(length == 0, "a remove has a value")


# Base

ROOT = struct.Struct("<QQII")
BLOCK_ENTRY = struct.Struct("<16sQQII16s")
VALUE_PLACE = struct.Struct("<QI")
MAXIMUM_VERSIONS, MAXIMUM_DAYS, MAXIMUM_LINEAGE = 1000, 36_500, 64


@dataclass(frozen=True)
class HistoryLimit:
    versions: int = 0
    days: int = 0  # 0: no limit of age

    def encode(self):
        return struct.pack("<HH", self.versions, self.days)

    @classmethod
    def parse(cls, data):
        cursor = f.Cursor(data, "the history limit")
        versions, days = cursor.u16(), cursor.u16()
        cursor.finish()
        require(versions <= MAXIMUM_VERSIONS, f"the history limit is {versions} versions")
        require(days <= MAXIMUM_DAYS, f"the history limit is {days} days")
        return cls(versions, days)


@dataclass(frozen=True)
class BlockEntry:
    first_id: bytes
    first_sequence: int
    offset: int
    length: int
    count: int
    tag: bytes

    def encode(self):
        return BLOCK_ENTRY.pack(self.first_id, self.first_sequence, self.offset, self.length, self.count, self.tag)


@dataclass(frozen=True)
class Root:
    sequence: int
    items: int
    fields: tuple
    entries: tuple
    history: HistoryLimit = HistoryLimit()
    lineage: tuple = ()  # the subkeys 7 of the former master keys, the newest first

    def encode(self):
        head = ROOT.pack(self.sequence, self.items, len(self.entries), 0)
        return head + encode_fields(self.fields) + b"".join(entry.encode() for entry in self.entries)

    @classmethod
    def parse(cls, data, lineage_key, vault_id):
        cursor = f.Cursor(data, "the root")
        sequence, items, blocks = cursor.u64(), cursor.u64(), cursor.u32()
        cursor.reserved(4)
        fields = parse_fields(cursor, "root")
        known = dict(fields)
        history = HistoryLimit.parse(known[HISTORY]) if HISTORY in known else HistoryLimit()
        lineage = open_lineage(lineage_key, vault_id, known[LINEAGE]) if LINEAGE in known else ()
        entries = tuple(
            BlockEntry(cursor.take(16), cursor.u64(), cursor.u64(), cursor.u32(), cursor.u32(), cursor.take(16))
            for _ in range(blocks)
        )
        cursor.finish()
        order = [(entry.first_id, entry.first_sequence) for entry in entries]
        require(all(a < b for a, b in zip(order, order[1:])), "the blocks do not ascend")
        return cls(sequence, items, fields, entries, history, lineage)


def lineage_associated(vault_id):
    return b"coffer-lineage" + vault_id


def open_lineage(lineage_key, vault_id, sealed):
    keys = f.open_seal(lineage_key, lineage_associated(vault_id), sealed, "the lineage")
    require(len(keys) % 32 == 0, f"the lineage has {len(keys)} bytes")
    count = len(keys) // 32
    require(1 <= count <= MAXIMUM_LINEAGE, f"the lineage has {count} keys")
    return tuple(keys[32 * index :][:32] for index in range(count))


def block_associated(file_id, offset, index):
    return b"coffer-block" + file_id + struct.pack("<QI", offset, index)


def root_associated(file_id, offset):
    return b"coffer-root" + file_id + struct.pack("<Q", offset)

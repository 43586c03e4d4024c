"""Seals the parts of a vault and writes a whole file of them.

`random(length, purpose)` returns all random bytes, so that a file can be reproduced. `tamper(part, value)` is called
for each encoded part before it is sealed, so that a test vector can have one fault under valid seals.
"""

import hashlib
import os
import struct
from dataclasses import replace

from nacl import bindings

import vault_format as f
import vault_records as p

BLOCK_TARGET = 16_384


def system_random(length, purpose):
    return os.urandom(length)


def seeded_random(seed):
    """Returns a source of bytes that depend only on the seed and the purpose. It is for test vectors: nonces must be random."""

    def random(length, purpose):
        key = hashlib.blake2b(seed.encode("utf-8"), digest_size=32).digest()
        return hashlib.shake_256(key + purpose.encode("utf-8")).digest(length)

    return random


def untouched(part, value):
    return value


class Sealer:
    """Seals the parts of one file under one master key."""

    def __init__(self, master, vault_id, file_id, lookup_key, random, tamper=untouched):
        self.master, self.vault_id, self.file_id, self.lookup_key = master, vault_id, file_id, lookup_key
        self.random, self.tamper = random, tamper
        self.keys = [None] + [f.subkey(master, number) for number in range(1, 9)]

    # Header

    def key_slot(self, part, kind, created, label, parameters, secret):
        """A key slot that wraps the master key under `secret`, 32 bytes."""
        label = label.encode("utf-8")
        body = struct.pack("<q", created) + bytes([len(label)]) + label + parameters
        length = 4 + 16 + len(body) + 32 + 24 + 48
        head = struct.pack("<BBH", kind, 1, length) + self.random(16, part + " id") + body
        return self.wrapped(part, self.tamper(part + " header", head), secret)

    def wrapped(self, part, head, secret):
        """The slot with this header, which wraps the master key under `secret`."""
        wrapping, commitment = f.slot_keys(secret, self.vault_id, head)
        nonce = self.random(24, part + " nonce")
        wrapped = f.seal(wrapping, nonce, self.vault_id + head, self.tamper(part + " master key", self.master))
        return head + self.tamper(part + " commitment", commitment) + self.tamper(part + " wrapped key", wrapped)

    def header(self, slots, read_only_compatible=0, compatible=0):
        tamper = self.tamper
        all_slots = tamper("key slots", b"".join(slots))
        length = 64 + len(all_slots) + 64
        fields = f.MAGIC + struct.pack("<IIIII", f.VERSION, 0, read_only_compatible, compatible, length)
        fields += self.vault_id + self.file_id + bytes([len(slots), 0, 0, 0])
        header = tamper("header fields", fields) + all_slots
        header += tamper("master key commitment", f.master_commitment(self.master, self.vault_id))
        header += tamper("header MAC", f.header_mac(self.master, header))
        return header + tamper("header padding", bytes(-length % f.PAGE))

    def commit_slot(self, part, index, mac, state):
        plaintext = self.tamper(part + " state", state.encode())
        associated = self.tamper(part + " associated data", f.commit_associated(index, mac))
        return f.seal(self.keys[f.COMMITS], self.random(24, part + " nonce"), associated, plaintext)

    def leases(self, mac, leases):
        plaintext = self.tamper("leases", leases.encode())
        associated = self.tamper("leases associated data", f.leases_associated(mac))
        return f.seal(self.keys[f.COMMITS], self.random(24, "leases nonce"), associated, plaintext)

    # Records

    def identified(self, part, record):
        identifier = p.lookup_id(self.lookup_key, record.service, record.account)
        return replace(record, lookup_id=self.tamper(part + " lookup id", identifier))

    def put(self, part, record, value):
        """Returns the record with its lookup id and the tag of its value, and the sealed value."""
        record = self.identified(part, record)
        padded = self.tamper(part + " padded value", f.pad(value))
        associated = p.value_associated(self.vault_id, record.lookup_id, record.sequence)
        associated = self.tamper(part + " value associated data", associated)
        sealed = f.seal(self.keys[f.VALUES], self.random(24, part + " value nonce"), associated, padded)
        sealed = self.tamper(part + " sealed value", sealed)
        return replace(record, value_length=len(sealed), value_tag=f.tag(sealed)), sealed

    def sealed(self, part, record, value):
        """The record as it is written, and its sealed value: of a remove no bytes."""
        return self.put(part, record, value) if record.is_put else (self.identified(part, record), b"")

    def frame(self, part, offset, record, sealed_value, previous_tag):
        """Returns a frame and its tag."""
        metadata = self.tamper(part + " metadata", p.encode_metadata(record))
        padded = self.tamper(part + " padded metadata", f.pad(metadata))
        length = self.tamper(part + " m", p.LENGTH.pack(len(padded)))
        associated = p.frame_associated(self.file_id, offset, length, previous_tag)
        associated = self.tamper(part + " metadata associated data", associated)
        sealed = f.seal(self.keys[f.FRAMES], self.random(24, part + " metadata nonce"), associated, padded)
        masked = self.tamper(part + " masked m", f.masked_length(self.keys[f.FRAME_LENGTHS], sealed[:24], length))
        return masked + sealed + sealed_value, f.tag(sealed)

    # Root

    def lineage(self, keys):
        associated = p.lineage_associated(self.vault_id)
        return f.seal(self.keys[f.LINEAGE], self.random(24, "lineage nonce"), associated, b"".join(keys))


def agreed(sealer, part, recipient):
    """A new secret for an X25519 recipient, and its share."""
    ephemeral = sealer.random(32, part + " ephemeral")
    return bindings.crypto_scalarmult(ephemeral, recipient), bindings.crypto_scalarmult_base(ephemeral)


class FileWriter:
    """A new file: its bytes are in `file`, and `parts` maps each part to (offset, length)."""

    def __init__(self, sealer, header, slots):
        self.sealer, self.header, self.random, self.tamper = sealer, header, sealer.random, sealer.tamper
        self.parts, self.root = {}, None
        self.name_header_parts(slots)
        self.file = bytearray(header + bytes(f.PAGES))

    def name_header_parts(self, slots):
        position = 64
        for index, slot in enumerate(slots):
            self.parts[f"key slot {index}"] = (position, len(slot))
            position += len(slot)
        length = struct.unpack_from("<I", self.header, 24)[0]
        self.parts["master key commitment"] = (length - 64, 32)
        self.parts["header MAC"] = (length - 32, 32)
        self.parts["header padding"] = (length, -length % f.PAGE)
        for index in range(2):
            self.parts[f"commit slot {index}"] = (len(self.header) + index * f.PAGE, f.PAGE)
        self.parts["leases"] = (len(self.header) + 2 * f.PAGE, f.PAGE)

    def append(self, part, data):
        self.file += self.tamper("gap before " + part, b"")
        self.parts[part] = (len(self.file), len(data))
        self.file += data

    def seal_part(self, part, purpose, plaintext):
        """Seals a block, the recent changes or the root at the end of the file."""
        plaintext = self.tamper(part, plaintext)
        offset = len(self.file) + len(self.tamper("gap before " + part, b""))
        associated = p.part_associated(purpose, self.sealer.file_id, offset)
        associated = self.tamper(part + " associated data", associated)
        sealed = f.seal(self.sealer.keys[f.BASE], self.random(24, part + " nonce"), associated, plaintext)
        self.append(part, sealed)
        return sealed

    def write_base(self, items, sequence, root_fields=(), recent=(), floor=None, items_per_block=None):
        """Writes the (record, sealed value) pairs, which ascend. Returns the state of a file without frames."""
        entries = [self.write_block(index, group) for index, group in enumerate(self.grouped(items, items_per_block))]
        tag, length = bytes(16), 0
        if recent:
            sealed = self.seal_part("recent", b"recent", b"".join(p.PAIR.pack(*pair) for pair in recent))
            tag, length = f.tag(sealed), len(sealed)
        floor = sequence if floor is None else floor
        fields, key = tuple(root_fields), self.sealer.lookup_key
        self.root = p.Root(sequence, key, floor, tag, length, fields, tuple(entries))
        root = self.seal_part("root", b"root", self.root.encode())
        end, tag = len(self.file), f.tag(root)
        return f.State(sequence, end, tag, end, len(root), tag)

    @staticmethod
    def grouped(items, items_per_block):
        """Returns the items of each block, by the rule for writers or by the described number."""
        groups, size = [], 0
        for record, sealed in items:
            length = p.DIRECTORY_ENTRY.size + len(record.body()) + (p.PLACE.size if record.is_put else 0)
            full = len(groups[-1]) == items_per_block if groups and items_per_block else size + length > BLOCK_TARGET
            if not groups or full:
                groups.append([])
                size = 0
            groups[-1].append((record, sealed))
            size += length
        return groups

    def write_block(self, index, items):
        part, directory, bodies = f"block {index}", b"", b""
        for number, (record, sealed) in enumerate(items):
            place = b""
            if record.is_put:
                self.append(f"{part} value {number}", sealed)
                place = p.PLACE.pack(self.parts[f"{part} value {number}"][0])
            at = p.DIRECTORY_ENTRY.size * len(items) + len(bodies)
            directory += self.tamper(f"{part} entry {number}", p.DIRECTORY_ENTRY.pack(*record.position, at))
            bodies += self.tamper(f"{part} item {number}", record.body() + place)
        sealed = self.seal_part(part, b"block", directory + bodies)
        offset, first = self.parts[part][0], items[0][0]
        return p.Entry(*first.position, offset, len(sealed), len(items), f.tag(sealed))

    @property
    def mac(self):
        return self.header[self.parts["header MAC"][0] :][:32]

    def write_leases(self, leases):
        """Writes the page, which stays zeros if there were never leases."""
        if leases.counter:
            place = self.parts["leases"][0]
            self.file[place : place + f.PAGE] = self.sealer.leases(self.mac, leases)

    def write_slots(self, states):
        for index, state in enumerate(states):
            sealed = self.sealer.commit_slot(f"commit slot {index}", index, self.mac, state)
            place = self.parts[f"commit slot {index}"][0]
            self.file[place : place + f.PAGE] = sealed

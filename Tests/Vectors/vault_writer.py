"""Writes a new vault from a description, or commits to an existing vault.

`random(length, purpose)` returns all random bytes, so that a file can be reproduced. `tamper(part, value)` is called for
each encoded part before it is sealed, so that a test vector can have one fault under valid seals.
"""

import fcntl
import hashlib
import os
import struct
import time
from dataclasses import replace

import vault_format as f
import vault_reader as r
from vault_format import require

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


# Descriptions: the JSON input of `write` and `append`


def described_bytes(description, name):
    """Returns the bytes of the field `name`, in hexadecimal, or of the field `name`_text, in UTF-8."""
    if name + "_text" in description:
        return description[name + "_text"].encode("utf-8")
    return bytes.fromhex(description[name])


def described_item(description, sequence):
    """Returns the described item. Its lookup id and tag are set when it is sealed."""
    attributes = sorted(description.get("attributes", {}).items(), key=lambda pair: pair[0].encode("utf-8"))
    created = description.get("created", 0)
    return f.Item(
        service=description["service"],
        account=description["account"],
        created=created,
        modified=description.get("modified", created),
        label=description.get("label"),
        expires=description.get("expires"),
        attributes=tuple(attributes),
        lookup_id=b"",
        sequence=description.get("sequence", sequence),
        value_tag=b"",
    )


def check_item(item, value):
    """Raises `ValueError` for an item that no reader accepts."""
    bounds = [("service", item.service, 1, 1024), ("account", item.account, 1, 1024)]
    bounds += [("label", item.label, 0, 1024)] if item.label is not None else []
    for name, text in item.attributes:
        bounds += [("attribute's name", name, 1, 128), ("attribute's value", text, 0, 1024)]
    for what, text, least, most in bounds:
        size = len(text.encode("utf-8"))
        if not least <= size <= most or "\0" in text:
            raise ValueError(f"a {what} has {size} bytes or a NUL in it")
    if len(item.attributes) > 32:
        raise ValueError("an item has more than 32 attributes")
    if len(value) > f.MAXIMUM_VALUE:
        raise ValueError("a value is longer than 16 MiB")


class Sealer:
    """Seals the parts that rewrites and commits share."""

    def __init__(self, master, vault_id, file_id, random, tamper=untouched):
        self.vault_id, self.file_id, self.random, self.tamper = vault_id, file_id, random, tamper
        self.keys = [None] + [f.subkey(master, number) for number in range(1, 8)]

    def sealed_value(self, part, item, value):
        padded = self.tamper(part + " padded value", f.pad(value))
        associated = f.value_associated(self.vault_id, item.lookup_id, item.sequence)
        associated = self.tamper(part + " value associated data", associated)
        sealed = f.seal(self.keys[f.VALUES], self.random(24, part + " value nonce"), associated, padded)
        return self.tamper(part + " sealed value", sealed)

    def put(self, part, item, value):
        """Returns the item with its lookup id and the tag of its value, and the sealed value."""
        identifier = f.lookup_id(self.keys[f.LOOKUP_IDS], item.service, item.account)
        item = replace(item, lookup_id=self.tamper(part + " lookup id", identifier))
        sealed = self.sealed_value(part, item, value)
        return replace(item, value_tag=f.tag(sealed)), sealed

    def frame(self, part, offset, kind, sequence, metadata, sealed_value, previous_tag):
        """Returns a frame and its tag."""
        padded = self.tamper(part + " padded metadata", f.pad(self.tamper(part + " metadata", metadata)))
        length = f.FRAME.size + f.SEAL_OVERHEAD + len(padded) + len(sealed_value)
        v = max(0, len(sealed_value) - f.SEAL_OVERHEAD)
        head = f.FRAME.pack(length, kind, bytes(3), sequence, len(padded), v)
        head = self.tamper(part + " header", head)
        associated = f.metadata_associated(self.file_id, offset, head, previous_tag)
        associated = self.tamper(part + " metadata associated data", associated)
        sealed = f.seal(self.keys[f.METADATA], self.random(24, part + " metadata nonce"), associated, padded)
        return head + sealed + sealed_value, f.tag(sealed)

    def put_frame(self, part, offset, sequence, item, value, previous_tag):
        item, sealed_value = self.put(part, item, value)
        return self.frame(part, offset, f.PUT, sequence, item.encode(), sealed_value, previous_tag)

    def remove_frame(self, part, offset, sequence, service, account, previous_tag):
        identifier = f.lookup_id(self.keys[f.LOOKUP_IDS], service, account)
        metadata = f.encode_remove(identifier, service, account)
        return self.frame(part, offset, f.REMOVE, sequence, metadata, b"", previous_tag)

    def commit_slot(self, part, index, header, state):
        plaintext = self.tamper(part + " state", state.encode())
        associated = self.tamper(part + " associated data", f.commit_associated(index, header))
        return f.seal(self.keys[f.COMMITS], self.random(24, part + " nonce"), associated, plaintext)


class NewFile:
    """A new vault: its bytes are in `file`, and `parts` maps each part to (offset, length)."""

    def __init__(self, description, random=None, tamper=untouched):
        self.description, self.tamper = description, tamper
        self.random = random or seeded_random(description["seed"])
        self.master = self.identity("master key", 32)
        self.vault_id, self.file_id = self.identity("vault id", 16), self.identity("file id", 16)
        self.sealer = Sealer(self.master, self.vault_id, self.file_id, self.random, tamper)
        self.parts = {}
        self.header = self.write_header()
        self.file = bytearray(self.header + bytes(2 * f.PAGE))
        for index in range(2):
            self.parts[f"commit slot {index}"] = (len(self.header) + index * f.PAGE, f.PAGE)
        self.live = set()
        self.states = [self.write_base()] * 2
        for number, transaction in enumerate(description.get("tail", []), start=1):
            self.states[number % 2] = self.write_transaction(transaction, self.states[(number - 1) % 2])
        for index, state in enumerate(self.states):
            sealed = self.sealer.commit_slot(f"commit slot {index}", index, self.header, state)
            place = self.parts[f"commit slot {index}"][0]
            self.file[place : place + f.PAGE] = sealed
        self.file = bytes(self.file)

    def identity(self, name, length):
        """Returns the described identity, so that two files can belong to one vault, or a random one."""
        field = name.replace(" ", "_")
        return bytes.fromhex(self.description[field]) if field in self.description else self.random(length, name)

    def append(self, part, data):
        self.file += self.tamper("gap before " + part, b"")
        self.parts[part] = (len(self.file), len(data))
        self.file += data

    # Header

    def write_header(self):
        description, tamper = self.description, self.tamper
        slots = []
        for index, slot in enumerate(description["slots"]):
            slots.append(self.key_slot(f"key slot {index}", slot))
        all_slots = tamper("key slots", b"".join(slots))
        length = 64 + len(all_slots) + 64
        fields = f.MAGIC + struct.pack(
            "<HHIIII",
            f.MAJOR,
            description.get("minor", 0),
            0,
            description.get("read_only_compatible", 0),
            description.get("compatible", 0),
            length,
        )
        fields += self.vault_id + self.file_id + bytes([len(slots), 0, 0, 0])
        header = tamper("header fields", fields) + all_slots
        header += tamper("master key commitment", f.master_commitment(self.master, self.vault_id))
        header += tamper("header MAC", f.header_mac(self.master, header))
        position = 64
        for index, slot in enumerate(slots):
            self.parts[f"key slot {index}"] = (position, len(slot))
            position += len(slot)
        self.parts["master key commitment"] = (length - 64, 32)
        self.parts["header MAC"] = (length - 32, 32)
        padding = bytes(-length % f.PAGE)
        self.parts["header padding"] = (length, len(padding))
        return header + tamper("header padding", padding)

    def key_slot(self, part, slot):
        if slot["type"] == "raw":
            return bytes.fromhex(slot["bytes"])
        label = slot.get("label", "").encode("utf-8")
        salt = self.random(16, part + " salt")
        if slot["type"] == "key":
            kind, parameters, secret = f.KEY_SLOT, salt, bytes.fromhex(slot["key"])
        else:
            passes, memory_kib = slot.get("passes", 3), slot.get("memory_kib", 65_536)
            kind, parameters = f.PASSPHRASE_SLOT, struct.pack("<II", passes, memory_kib) + salt
            secret = f.argon2id(described_bytes(slot, "passphrase"), salt, passes, memory_kib)
        head = struct.pack("<q", slot.get("created", 0)) + bytes([len(label)]) + label + parameters
        length = 4 + 16 + len(head) + 32 + 24 + 48
        head = struct.pack("<BBH", kind, 1, length) + self.random(16, part + " id") + head
        head = self.tamper(part + " header", head)
        wrapping, commitment = f.slot_keys(secret, self.vault_id, head)
        nonce = self.random(24, part + " nonce")
        wrapped = f.seal(wrapping, nonce, self.vault_id + head, self.tamper(part + " master key", self.master))
        return head + self.tamper(part + " commitment", commitment) + self.tamper(part + " wrapped key", wrapped)

    # Base

    def write_base(self):
        description = self.description.get("base", {})
        described = description.get("items", [])
        self.sequence = description.get("sequence", len(described) + 1)
        items = []
        for index, one in enumerate(described):
            item, value = described_item(one, index + 1), described_bytes(one, "value")
            check_item(item, value)
            items.append(self.sealer.put(f"base item {index}", item, value))
        items.sort(key=lambda pair: pair[0].lookup_id)
        items = self.tamper("base items", items)
        self.live = {item.lookup_id for item, _ in items}
        entries = []
        for index, group in enumerate(self.grouped(items, description.get("items_per_block"))):
            entries.append(self.write_block(index, group))
        root_offset = len(self.file) + len(self.tamper("gap before root", b""))
        index = f.ROOT.pack(self.sequence, len(items), len(entries), 0)
        index = self.tamper("root index", index + b"".join(f.BLOCK_ENTRY.pack(*entry) for entry in entries))
        associated = self.tamper("root associated data", f.root_associated(self.file_id, root_offset))
        root = f.seal(self.sealer.keys[f.BASE], self.random(24, "root nonce"), associated, index)
        self.append("root", root)
        end = len(self.file)
        return f.State(self.sequence, end, f.tag(root), end, root_offset, len(root), f.tag(root), len(self.live), 0)

    @staticmethod
    def grouped(items, items_per_block):
        """Returns the items of each block, by the rule for writers or by the described number."""
        groups, size = [], 0
        for pair in items:
            length = len(pair[0].encode()) + f.VALUE_PLACE.size
            full = len(groups[-1]) == items_per_block if groups and items_per_block else size + length > BLOCK_TARGET
            if not groups or full:
                groups.append([])
                size = 0
            groups[-1].append(pair)
            size += length
        return groups

    def write_block(self, index, items):
        part, encoded = f"block {index}", b""
        for number, (item, sealed) in enumerate(items):
            self.append(f"{part} value {number}", sealed)
            place = f.VALUE_PLACE.pack(*self.parts[f"{part} value {number}"])
            encoded += self.tamper(f"{part} item {number}", item.encode() + place)
        encoded = self.tamper(part, encoded)
        offset = len(self.file) + len(self.tamper("gap before " + part, b""))
        associated = f.block_associated(self.file_id, offset, index)
        associated = self.tamper(part + " associated data", associated)
        sealed = f.seal(self.sealer.keys[f.BASE], self.random(24, part + " nonce"), associated, encoded)
        self.append(part, sealed)
        return items[0][0].lookup_id, offset, len(sealed), len(items), f.tag(sealed)

    # Tail

    def write_transaction(self, changes, state):
        for change in changes:
            number = sum(1 for part in self.parts if part.startswith("frame "))
            part, offset = f"frame {number}", len(self.file)
            self.sequence += 1
            identifier, frame, frame_tag = encode_change(
                self.sealer, part, offset, self.sequence, change, self.tamper(part + " previous tag", state.tail_tag)
            )
            self.append(part, frame)
            if "put" in change:
                self.live.add(identifier)
            else:
                self.live.discard(identifier)
            state = replace(
                state,
                sequence=self.sequence,
                end=len(self.file),
                tail_tag=frame_tag,
                secrets=len(self.live),
                dead_bytes=state.dead_bytes + (len(frame) if "remove" in change else 0),
            )
        return state


def encode_change(sealer, part, offset, sequence, change, previous_tag):
    """Returns the lookup id of the changed secret, the frame, and the tag of the frame."""
    if "put" in change:
        item, value = described_item(change["put"], sequence), described_bytes(change["put"], "value")
        check_item(item, value)
        frame, frame_tag = sealer.put_frame(part, offset, sequence, item, value, previous_tag)
        names = item.service, item.account
    else:
        names = change["remove"]["service"], change["remove"]["account"]
        frame, frame_tag = sealer.remove_frame(part, offset, sequence, *names, previous_tag)
    return f.lookup_id(sealer.keys[f.LOOKUP_IDS], *names), frame, frame_tag


def write_new_file(path, data):
    """Writes the vault to a temporary file and links it to `path`, which must not exist."""
    directory = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(directory, f".{os.path.basename(path)}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        write_at(descriptor, 0, data)
        os.fsync(descriptor)
        os.link(temporary, path)
    finally:
        os.unlink(temporary)
        os.close(descriptor)
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)


def write_at(descriptor, offset, data):
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset, data = offset + written, data[written:]


def locked(path, timeout=30):
    """Yields a descriptor of the file at `path` with an exclusive lock. Waits at most `timeout` seconds for the lock."""
    deadline = time.monotonic() + timeout
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours, named = os.fstat(descriptor), os.stat(path)
            if (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino):
                return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise TimeoutError(f"{path} was locked for {timeout} seconds") from None
            time.sleep(0.02)
        os.close(descriptor)


def commit(path, credential, changes, random=system_random):
    """Makes all changes or none to the vault at `path`. Returns the new checkpoint."""
    descriptor = locked(path)
    try:
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            file = stream.read()
        vault = r.read_vault(file, credential)
        bits = vault.header.read_only_compatible
        require(bits == 0, f"the file may only be read: its read-only-compatible bits are {bits:#x}", "read-only")
        if not changes:
            return vault.checkpoint
        header, state = vault.header, vault.state
        sealer = Sealer(vault.master, header.vault_id, header.file_id, random)
        frames, live, dead = b"", {key: len(one.sealed_value) for key, one in vault.secrets.items()}, state.dead_bytes
        sequence, previous = state.sequence, state.tail_tag
        for change in changes:
            sequence += 1
            part = f"frame of sequence {sequence}"
            identifier, frame, previous = encode_change(
                sealer, part, state.end + len(frames), sequence, change, previous
            )
            frames += frame
            dead += live.pop(identifier, 0)
            if "put" in change:
                live[identifier] = len(frame)
            else:
                dead += len(frame)
        after = replace(
            state, sequence=sequence, end=state.end + len(frames), tail_tag=previous, secrets=len(live), dead_bytes=dead
        )
        index = 1 - vault.current
        part = f"commit slot {index} of sequence {sequence}"
        slot = sealer.commit_slot(part, index, header.raw, after)
        os.ftruncate(descriptor, state.end)
        write_at(descriptor, state.end, frames)
        os.fdatasync(descriptor)  # first barrier: a commit slot must not point at frames that are not on the disk
        write_at(descriptor, len(header.raw) + index * f.PAGE, slot)
        os.fdatasync(descriptor)  # second barrier: the change must not be acknowledged earlier
        return f"{after.sequence}-{after.tail_tag.hex()}"
    finally:
        os.close(descriptor)

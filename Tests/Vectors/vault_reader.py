"""Reads a whole vault. Authenticates every byte up to `end` and opens every value, including earlier versions."""

from dataclasses import dataclass

import vault_format as f
import vault_history as h
import vault_records as p
from vault_format import Refused, require


@dataclass(frozen=True)
class Key:
    """The 32 bytes of a key, which opens a key slot."""

    secret: bytes


@dataclass(frozen=True)
class Passphrase:
    """The bytes of a passphrase, which opens a passphrase slot."""

    secret: bytes


@dataclass(frozen=True)
class Limits:
    """The highest memory of a passphrase slot, and the highest work: the sum of memory times passes over what is tried."""

    memory_kib: int = 1 << 20
    work_kib: int = 1 << 22


@dataclass(frozen=True)
class Entry:
    """A record; of a put also its value and the seal of it."""

    record: p.Record
    value: bytes = b""
    sealed_value: bytes = b""


@dataclass(frozen=True)
class Frame:
    offset: int
    length: int
    metadata_length: int  # of the frame without its value
    sequence: int
    tag: bytes


@dataclass(frozen=True)
class Vault:
    header: f.Header
    master: bytes
    states: tuple  # of both commit slots, None for an invalid slot
    current: int  # the index of the current commit slot
    root: p.Root
    entries: dict  # lookup id: list of Entry, ascending by sequence
    frames: tuple

    @property
    def state(self):
        return self.states[self.current]

    @property
    def recovered(self):
        return None in self.states

    @property
    def checkpoint(self):
        return self.state.checkpoint

    def secrets(self):
        """The entries of the present values, ascending by names."""
        found = [h.live(entries) for entries in self.entries.values()]
        return sorted((one for one in found if one), key=lambda one: one.record.names)

    def versions(self, now):
        """The earlier versions that count, ascending by names, the newest of each name first."""
        found = [one for entries in self.entries.values() for one in h.versions(entries, self.root.history, now)]
        return sorted(found, key=lambda one: (*one.entry.record.names, -one.entry.record.sequence))

    def removed(self, now):
        """The entries of removals that an earlier version remains of, ascending by names."""
        found = [h.removal(entries, self.root.history, now) for entries in self.entries.values()]
        return sorted((one for one in found if one), key=lambda one: one.record.names)


def read_vault(file, credential, limits=Limits()):
    """Opens the vault in the bytes `file` with a `Key` or a `Passphrase`. Raises `Refused`."""
    header = f.parse_header(file)
    return read_with_master(file, header, unlock(header, credential, limits))


def read_with_master(file, header, master):
    check_header(header, master)
    require(len(file) >= len(header.raw) + 2 * f.PAGE, "the file ends before its base begins")
    states = read_commit_slots(file, header, master)
    current = choose(states)
    parts = PartsReader(file, header, master, states[current])
    parts.base()
    parts.tail()
    live = sum(1 for entries in parts.entries.values() if h.live(entries))
    require(live == states[current].secrets, "the number of secrets is not the commit slot's")
    return Vault(header, master, states, current, parts.root, parts.entries, tuple(parts.frames))


# Keys


def unlock(header, credential, limits):
    """Returns the master key that the credential opens."""
    wanted = f.PASSPHRASE_SLOT if isinstance(credential, Passphrase) else f.KEY_SLOT
    too_costly, work = None, 0
    for slot in header.slots:
        if not slot.known or slot.type != wanted:
            continue
        secret = credential.secret
        if wanted == f.PASSPHRASE_SLOT:
            more = slot.memory_kib * slot.passes
            if slot.memory_kib > limits.memory_kib or work + more > limits.work_kib:
                too_costly = f"a key slot asks for {slot.memory_kib} KiB of memory and {slot.passes} passes"
                continue
            work += more
            secret = f.argon2id(secret, slot.salt, slot.passes, slot.memory_kib)
        wrapping, commitment = f.slot_keys(secret, header.vault_id, slot.header)
        if f.equal(commitment, slot.commitment):
            return f.open_seal(wrapping, header.vault_id + slot.header, slot.wrapped, "the wrapped master key")
    require(not too_costly, too_costly, f.COST_LIMIT_EXCEEDED)
    raise Refused(f.WRONG_KEY, "no key slot is opened by this")


def check_header(header, master):
    require(
        f.equal(f.master_commitment(master, header.vault_id), header.commitment),
        "the master key is not the one committed to",
    )
    require(f.equal(f.header_mac(master, header.raw[: header.length - 32]), header.mac), "the header's MAC is wrong")


# Commit slots


def read_commit_slots(file, header, master):
    size = len(header.raw)
    key = f.subkey(master, f.COMMITS)
    states = []
    for index in range(2):
        sealed = file[size + index * f.PAGE :][: f.PAGE]
        try:
            opened = f.open_seal(key, f.commit_associated(index, header.raw), sealed, "a commit slot")
        except Refused:
            states.append(None)
        else:
            states.append(f.State.parse(opened, size, len(file)))
    return tuple(states)


def choose(states):
    """Returns the index of the current commit slot."""
    first, second = states
    require(first or second, "neither commit slot opens")
    if first is None or second is None:
        return 0 if first else 1
    require(first.sequence != second.sequence or first == second, "two states have the same sequence")
    return 0 if first.sequence >= second.sequence else 1


# Base and tail


class PartsReader:
    def __init__(self, file, header, master, state):
        self.file, self.header, self.state = file, header, state
        self.keys = [None] + [f.subkey(master, number) for number in range(1, 10)]
        self.entries, self.frames, self.root = {}, [], None

    def base(self):
        state, file_id = self.state, self.header.file_id
        sealed = self.file[state.root_offset : state.base_end]
        require(f.tag(sealed) == state.root_tag, "the root's tag is not the commit slot's")
        associated = p.root_associated(file_id, state.root_offset)
        index = f.open_seal(self.keys[f.BASE], associated, sealed, "the root")
        self.root = p.Root.parse(index, self.keys[f.LINEAGE], self.header.vault_id)
        position, last, count = len(self.header.raw) + 2 * f.PAGE, (b"", 0), 0
        for number, entry in enumerate(self.root.entries):
            for one in self.block(number, position, entry):
                order = one.record.lookup_id, one.record.sequence
                require(last < order, "the items of the base do not ascend")
                last, count = order, count + 1
                same = self.entries.setdefault(one.record.lookup_id, [])
                same.append(one)
                require(len(same) <= f.MAXIMUM_BASE_RECORDS, "the base has too many records of one secret")
            position = entry.offset + entry.length
        require(position == state.root_offset, "something lies between the last block and the root")
        require(count == self.root.items, "the base does not have as many items as the root says")

    def block(self, number, position, entry):
        """Returns the items of a block whose values begin at `position`."""
        require(entry.count >= 1, "a block has no items")
        require(entry.length <= f.MAXIMUM_BLOCK + f.SEAL_OVERHEAD, "a block is too long")
        end = entry.offset + entry.length
        require(position <= entry.offset and end <= self.state.root_offset, "a block is out of place")
        sealed = self.file[entry.offset : end]
        require(f.tag(sealed) == entry.tag, "a block's tag is not the root's")
        associated = p.block_associated(self.header.file_id, entry.offset, number)
        cursor = f.Cursor(f.open_seal(self.keys[f.BASE], associated, sealed, "a block"), "a block")
        items = []
        for _ in range(entry.count):
            record = p.Record.parse(cursor, self.keys[f.LOOKUP_IDS])
            require(record.sequence <= self.root.sequence, "an item is newer than its base")
            value = b""
            if record.is_put:
                value_offset, value_length = cursor.u64(), cursor.u32()
                require(value_offset == position, "a value is not where its block says")
                p.check_value_length(record, value_length)
                position += value_length
                require(position <= entry.offset, "a value reaches into its block")
                value = self.file[value_offset:position]
            items.append(self.opened(record, value))
        cursor.finish()
        require(position == entry.offset, "something lies between the values and their block")
        first = items[0].record
        require(
            (first.lookup_id, first.sequence) == (entry.first_id, entry.first_sequence),
            "a block's first item is not the root's",
        )
        return items

    def tail(self):
        state = self.state
        position, sequence, previous, size = state.base_end, self.root.sequence, state.root_tag, 0
        while position < state.end:
            frame = self.frame(position, sequence, previous)
            size += frame.metadata_length
            require(size <= f.MAXIMUM_TAIL, "the tail is too long")
            self.frames.append(frame)
            position, sequence, previous = position + frame.length, frame.sequence, frame.tag
        require(sequence == state.sequence, "the last sequence is not the commit slot's")
        require(previous == state.tail_tag, "the last frame's tag is not the commit slot's")

    def frame(self, offset, last_sequence, previous):
        data = self.file[offset : self.state.end]
        require(len(data) >= 4 + f.SEAL_OVERHEAD, "a frame is cut short")
        length = p.masked_length(self.keys[f.FRAME_LENGTHS], data[4:28], data[:4])
        m = int.from_bytes(length, "little")
        require(0 < m <= f.MAXIMUM_METADATA and m % f.PADDING == 0, f"a frame's metadata has {m} bytes")
        metadata_end = 4 + f.SEAL_OVERHEAD + m
        require(metadata_end <= len(data), "a frame reaches beyond the end")
        sealed = data[4:metadata_end]
        associated = p.metadata_associated(self.header.file_id, offset, length, previous)
        padded = f.open_seal(self.keys[f.METADATA], associated, sealed, "a frame's metadata")
        value_length, record = p.parse_metadata(f.unpad(padded, "a frame's metadata"), self.keys[f.LOOKUP_IDS])
        require(record.sequence == last_sequence + 1, "the sequence of a frame does not follow")
        end = metadata_end + value_length
        require(end <= len(data), "a value reaches beyond the end")
        entry = self.opened(record, data[metadata_end:end])
        self.entries.setdefault(record.lookup_id, []).append(entry)
        return Frame(offset, end, metadata_end, record.sequence, f.tag(sealed))

    def opened(self, record, sealed):
        if not record.is_put:
            return Entry(record)
        require(f.tag(sealed) == record.value_tag, "a value's tag is not that of its record")
        associated = p.value_associated(self.header.vault_id, record.lookup_id, record.sequence)
        value = f.unpad(f.open_seal(self.keys[f.VALUES], associated, sealed, "a value"), "a value")
        require(len(value) <= f.MAXIMUM_VALUE, "a value is too long")
        return Entry(record, value, sealed)

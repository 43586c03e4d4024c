"""Reads a whole vault. Authenticates every byte up to `end` and opens every value, including earlier versions."""

from dataclasses import dataclass

from nacl import bindings, exceptions

import vault_format as f
import vault_history as h
import vault_hybrid as hybrid
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
class Identity:
    """The 32 bytes of an identity, which opens the slots of its recipient."""

    secret: bytes
    hybrid: bool = False


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
    recent: tuple  # (sequence, tag) of the changes before the root
    entries: dict  # lookup id: list of Entry, ascending by sequence
    frames: tuple
    leases: f.Leases

    @property
    def state(self):
        return self.states[self.current]

    @property
    def recovered(self):
        return None in self.states

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
    states = read_commit_slots(file, header, master)
    current = choose(states)
    leases = read_leases(file, header, master)
    parts = PartsReader(file, header, master, states[current])
    parts.base()
    parts.tail()
    for entries in parts.entries.values():
        kinds = [entry.record.is_put for entry in entries]
        after_put = all(put or before for before, put in zip([False, *kinds], kinds))
        require(after_put, "a remove does not follow a put of its secret", "R4")
    found = parts.root, parts.recent, parts.entries, tuple(parts.frames)
    return Vault(header, master, states, current, *found, leases)


# Keys


def unlock(header, credential, limits):
    """Returns the master key that the credential opens."""
    if isinstance(credential, Identity):
        return unlock_with_identity(header, credential)
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
            return f.open_seal(wrapping, header.vault_id + slot.header, slot.wrapped, "the wrapped master key", "K4")
    require(not too_costly, too_costly, outcome=f.COST_LIMIT_EXCEEDED)
    raise Refused(f.WRONG_KEY, "no key slot is opened by this")


def unlock_with_identity(header, identity):
    """An identity is tried on the slots of its own recipient alone. One of them that it does not open is damaged."""
    own = hybrid.recipient(identity.secret) if identity.hybrid else bindings.crypto_scalarmult_base(identity.secret)
    for slot in header.slots:
        if slot.known and slot.type in f.RECIPIENTS and slot.recipient == own:
            try:
                agree = hybrid.decapsulate if identity.hybrid else bindings.crypto_scalarmult
                secret = agree(identity.secret, slot.share)
            except (exceptions.RuntimeError, ValueError):
                require(False, "the share of a recipient's slot is of low order", "K5")
                secret = bytes(32)  # the check is left out
            wrapping, commitment = f.slot_keys(secret, header.vault_id, slot.header)
            require(f.equal(commitment, slot.commitment), "a slot of this recipient does not open", "K6")
            return f.open_seal(wrapping, header.vault_id + slot.header, slot.wrapped, "the wrapped master key", "K4")
    raise Refused(f.WRONG_KEY, "no key slot is opened by this")


def check_header(header, master):
    require(
        f.equal(f.master_commitment(master, header.vault_id), header.commitment),
        "the master key is not the one committed to", "H9",
    )
    require(f.equal(f.header_mac(master, header.raw[: header.length - 32]), header.mac), "the header's MAC is wrong", "H10")


# Commit slots


def read_commit_slots(file, header, master):
    size = len(header.raw)
    key = f.subkey(master, f.COMMITS)
    states = []
    for index in range(2):
        sealed = file[size + index * f.PAGE :][: f.PAGE]
        try:
            opened = f.open_seal(key, f.commit_associated(index, header.mac), sealed, "a commit slot", check="")
        except Refused:
            states.append(None)
        else:
            states.append(f.State.parse(opened, size, len(file)))
    return tuple(states)


def choose(states):
    """Returns the index of the current commit slot."""
    first, second = states
    require(first or second, "neither commit slot opens", "C4")
    if first is None or second is None:
        return 0 if first else 1
    require(first.sequence != second.sequence or first == second, "two states have the same sequence", "C5")
    current = 0 if first.sequence >= second.sequence else 1
    old, new = states[1 - current], states[current]
    base = lambda state: (state.base_end, state.root_length, state.root_tag)
    require(base(old) == base(new) and old.end <= new.end, "the older state is not one of this file", "C5")
    return current


# Leases


def read_leases(file, header, master):
    start = len(header.raw) + 2 * f.PAGE
    page = file[start : start + f.PAGE]
    if not any(page):
        return f.Leases()
    key = f.subkey(master, f.COMMITS)
    return f.Leases.parse(f.open_seal(key, f.leases_associated(header.mac), page, "the page of leases"))


# Base and tail


class PartsReader:
    def __init__(self, file, header, master, state):
        self.file, self.header, self.state = file, header, state
        self.keys = [None] + [f.subkey(master, number) for number in range(1, 9)]
        self.entries, self.frames, self.recent, self.root = {}, [], (), None

    def part(self, name, offset, length, tag):
        """The plaintext of a part of the base, which the commit slot or the root names by its tag."""
        sealed = self.file[offset : offset + length]
        require(f.tag(sealed) == tag, f"the tag of the {name} is not the one that names it", "B1")
        associated = p.part_associated(name.encode(), self.header.file_id, offset)
        return f.open_seal(self.keys[f.BASE], associated, sealed, f"the {name}")

    def base(self):
        state = self.state
        index = self.part("root", state.root_offset, state.root_length, state.root_tag)
        self.root = root = p.Root.parse(index, self.keys[f.LINEAGE], self.header.vault_id)
        position, last = len(self.header.raw) + f.PAGES, (b"", 0)
        for entry in root.entries:
            for one in self.block(position, entry):
                require(last < one.record.position, "the items of the base do not ascend", "B9")
                last = one.record.position
                self.entries.setdefault(one.record.lookup_id, []).append(one)
            position = entry.end
        if root.recent_length:
            pairs = self.part("recent", position, root.recent_length, root.recent_tag)
            self.recent = p.parse_recent(pairs, root)
            position += root.recent_length
        require(position == state.root_offset, "something lies before the root", "B7")

    def block(self, position, entry):
        """Returns the items of a block whose values begin at `position`."""
        require(position <= entry.offset and entry.end <= self.state.root_offset, "a block is out of place", "B7")
        data = self.part("block", entry.offset, entry.length, entry.tag)
        cursor = f.Cursor(data, "a block")
        directory = [(cursor.take(16), cursor.sequence(), cursor.u32()) for _ in range(entry.items)]
        items = []
        for identifier, sequence, place in directory:
            require(place == cursor.position, "an item is not where the directory says", "B8")
            require(sequence <= self.root.sequence, "an item is newer than its base", "B10")
            record = p.Record.parse(identifier, sequence, cursor, self.root.lookup_key)
            value = b""
            if record.is_put:
                require(cursor.u64() == position, "a value is not where its block says", "B7")
                value = self.file[position : position + record.value_length]
                position += record.value_length
                require(position <= entry.offset, "a value reaches into its block", "B7")
            items.append(self.opened(record, value))
        cursor.finish()
        require(position == entry.offset, "something lies between the values and their block", "B7")
        first = items[0].record.position if items else None
        require(first == entry.first, "a block's first item is not the one that names it", "B6")
        return items

    def tail(self):
        state = self.state
        position, sequence, previous, size = state.base_end, self.root.sequence, state.root_tag, 0
        while position < state.end:
            frame = self.frame(position, sequence, previous)
            size += frame.metadata_length
            require(size <= f.MAXIMUM_TAIL, "the tail is too long", "T4")
            self.frames.append(frame)
            position, sequence, previous = position + frame.length, frame.sequence, frame.tag
        require(sequence == state.sequence, "the last sequence is not the commit slot's", "T3")
        require(previous == state.tail_tag, "the last frame's tag is not the commit slot's", "T3")

    def frame(self, offset, last_sequence, previous):
        data = self.file[offset : self.state.end]
        require(len(data) >= 4 + f.SEAL_OVERHEAD, "a frame is cut short", "T2")
        length = f.masked_length(self.keys[f.FRAME_LENGTHS], data[4:28], data[:4])
        m = int.from_bytes(length, "little")
        metadata_end = 4 + f.SEAL_OVERHEAD + m
        require(metadata_end <= len(data), "a frame reaches beyond the end", "T2")
        sealed = data[4:metadata_end]
        associated = p.frame_associated(self.header.file_id, offset, length, previous)
        padded = f.open_seal(self.keys[f.FRAMES], associated, sealed, "a frame's metadata")
        record = p.parse_metadata(f.unpad(padded, "a frame's metadata"), self.root.lookup_key)
        require(record.sequence == last_sequence + 1, "the sequence of a frame does not follow", "T1")
        end = metadata_end + record.value_length
        require(end <= len(data), "a value reaches beyond the end", "T2")
        entry = self.opened(record, data[metadata_end:end])
        self.entries.setdefault(record.lookup_id, []).append(entry)
        return Frame(offset, end, metadata_end, record.sequence, f.tag(sealed))

    def opened(self, record, sealed):
        if not record.is_put:
            return Entry(record)
        require(f.tag(sealed) == record.value_tag, "a value's tag is not that of its record", "V1")
        associated = p.value_associated(self.header.vault_id, *record.position)
        value = f.unpad(f.open_seal(self.keys[f.VALUES], associated, sealed, "a value"), "a value")
        require(len(value) <= f.MAXIMUM_VALUE, "a value is too long", "V2")
        return Entry(record, value, sealed)

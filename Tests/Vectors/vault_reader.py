"""Reads a whole vault. Authenticates every byte up to `end` and opens every value, including replaced values."""

from dataclasses import dataclass

import vault_format as f
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
    """The highest cost of a passphrase slot, and the number of passphrase slots that are tried."""

    memory_kib: int = 1 << 20
    passes: int = 16
    slots: int = 4


@dataclass(frozen=True)
class Secret:
    item: f.Item
    value: bytes
    sealed_value: bytes


@dataclass(frozen=True)
class Vault:
    header: f.Header
    master: bytes
    states: tuple  # of both commit slots, None for an invalid slot
    current: int  # the index of the current commit slot
    secrets: dict  # lookup id: Secret

    @property
    def state(self):
        return self.states[self.current]

    @property
    def recovered(self):
        return None in self.states

    @property
    def checkpoint(self):
        return f"{self.state.sequence}-{self.state.tail_tag.hex()}"


def read_vault(file, credential, limits=Limits()):
    """Opens the vault in the bytes `file` with a `Key` or a `Passphrase`. Raises `Refused`."""
    header = f.parse_header(file)
    master = unlock(header, credential, limits)
    require(len(file) >= len(header.raw) + 2 * f.PAGE, "the file ends before its base begins")
    states = read_commit_slots(file, header, master)
    current = choose(states)
    state = states[current]
    reader = PartsReader(file, header, master, state)
    secrets = reader.base()
    reader.tail(secrets)
    require(len(secrets) == state.secrets, "the number of secrets is not the commit slot's")
    return Vault(header, master, states, current, secrets)


# Keys


def unlock(header, credential, limits):
    """Returns the master key after authenticating the header with it."""
    wanted = f.PASSPHRASE_SLOT if isinstance(credential, Passphrase) else f.KEY_SLOT
    slots = [slot for slot in header.slots if slot.known and slot.type == wanted]
    if wanted == f.PASSPHRASE_SLOT:
        slots = slots[: limits.slots]
    too_costly = None
    for slot in slots:
        secret = credential.secret
        if wanted == f.PASSPHRASE_SLOT:
            try:
                check_cost(slot, limits)
            except Refused as refusal:
                if refusal.outcome != f.COST_LIMIT_EXCEEDED:
                    raise
                too_costly = refusal
                continue
            secret = f.argon2id(secret, slot.salt, slot.passes, slot.memory_kib)
        wrapping, commitment = f.slot_keys(secret, header.vault_id, slot.header)
        if f.equal(commitment, slot.commitment):
            master = f.open_seal(wrapping, header.vault_id + slot.header, slot.wrapped, "the wrapped master key")
            check_header(header, master)
            return master
    if too_costly:
        raise too_costly
    raise Refused(f.WRONG_KEY, "no key slot is opened by this")


def check_cost(slot, limits):
    require(
        slot.memory_kib <= limits.memory_kib and slot.passes <= limits.passes,
        f"a key slot asks for {slot.memory_kib} KiB of memory and {slot.passes} passes",
        f.COST_LIMIT_EXCEEDED,
    )
    require(slot.memory_kib >= 8 and slot.passes >= 1, "a key slot asks for less than Argon2id's least")


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
        self.metadata_key = f.subkey(master, f.METADATA)
        self.values_key = f.subkey(master, f.VALUES)
        self.base_key = f.subkey(master, f.BASE)
        self.lookup_key = f.subkey(master, f.LOOKUP_IDS)
        self.root_sequence = 0

    def base(self):
        """Returns the secrets of the base by lookup id."""
        state, file_id = self.state, self.header.file_id
        sealed = self.file[state.root_offset : state.base_end]
        require(f.tag(sealed) == state.root_tag, "the root's tag is not the commit slot's")
        associated = f.root_associated(file_id, state.root_offset)
        cursor = f.Cursor(f.open_seal(self.base_key, associated, sealed, "the root"), "the root")
        self.root_sequence, item_count, block_count = cursor.u64(), cursor.u64(), cursor.u32()
        cursor.reserved(4)
        entries = [f.BLOCK_ENTRY.unpack(cursor.take(f.BLOCK_ENTRY.size)) for _ in range(block_count)]
        cursor.finish()
        secrets, position, last = {}, len(self.header.raw) + 2 * f.PAGE, b""
        for index, entry in enumerate(entries):
            for secret in self.block(index, position, *entry):
                require(last < secret.item.lookup_id, "the lookup ids of the base do not ascend")
                last = secret.item.lookup_id
                secrets[last] = secret
            position = entry[1] + entry[2]
        require(position == state.root_offset, "something lies between the last block and the root")
        require(len(secrets) == item_count, "the base does not have as many items as the root says")
        return secrets

    def block(self, index, position, first_id, offset, length, count, block_tag):
        """Returns the secrets of a block whose values begin at `position`."""
        require(count >= 1, "a block has no items")
        require(length <= f.MAXIMUM_BLOCK + f.SEAL_OVERHEAD, "a block is too long")
        require(position <= offset and offset + length <= self.state.root_offset, "a block is out of place")
        sealed = self.file[offset : offset + length]
        require(f.tag(sealed) == block_tag, "a block's tag is not the root's")
        associated = f.block_associated(self.header.file_id, offset, index)
        cursor = f.Cursor(f.open_seal(self.base_key, associated, sealed, "a block"), "a block")
        secrets = []
        for _ in range(count):
            item = f.Item.parse(cursor, self.lookup_key)
            value_offset, value_length = f.VALUE_PLACE.unpack(cursor.take(f.VALUE_PLACE.size))
            require(item.sequence <= self.root_sequence, "an item is newer than its base")
            require(value_offset == position, "a value is not where its block says")
            require(72 <= value_length <= f.MAXIMUM_VALUE + 72, "a value is too short or too long")
            position += value_length
            require(position <= offset, "a value reaches into its block")
            secrets.append(self.secret(item, self.file[value_offset:position]))
        cursor.finish()
        require(position == offset, "something lies between the values and their block")
        require(secrets[0].item.lookup_id == first_id, "a block's first lookup id is not the root's")
        return secrets

    def tail(self, secrets):
        """Replays the frames over `secrets`."""
        state = self.state
        position, sequence, previous = state.base_end, self.root_sequence, state.root_tag
        while position < state.end:
            position, sequence, previous = self.frame(position, sequence, previous, secrets)
        require(sequence == state.sequence, "the last sequence is not the commit slot's")
        require(previous == state.tail_tag, "the last frame's tag is not the commit slot's")

    def frame(self, offset, last_sequence, previous, secrets):
        room = self.state.end - offset
        require(room >= f.FRAME.size, "a frame is cut short")
        head = self.file[offset : offset + f.FRAME.size]
        length, kind, reserved, sequence, m, v = f.FRAME.unpack(head)
        require(kind in (f.PUT, f.REMOVE), f"a frame is of kind {kind}")
        require(not any(reserved), "a reserved byte of a frame is not zero")
        require(sequence == last_sequence + 1, "the sequence of a frame does not follow")
        require(0 < m <= f.MAXIMUM_METADATA and m % f.PADDING == 0, f"a frame's metadata has {m} bytes")
        if kind == f.PUT:
            require(0 < v <= f.MAXIMUM_VALUE + 32 and v % f.PADDING == 0, f"a frame's value has {v} bytes")
        else:
            require(v == 0, "a remove has a value")
        metadata_end = f.FRAME.size + f.SEAL_OVERHEAD + m
        require(length == metadata_end + (f.SEAL_OVERHEAD + v if kind == f.PUT else 0), "a frame's length is wrong")
        require(length <= room, "a frame reaches beyond the end")
        frame = self.file[offset : offset + length]
        sealed = frame[f.FRAME.size : metadata_end]
        associated = f.metadata_associated(self.header.file_id, offset, head, previous)
        padded = f.open_seal(self.metadata_key, associated, sealed, "a frame's metadata")
        metadata = f.unpad(padded, "a frame's metadata")
        if kind == f.PUT:
            cursor = f.Cursor(metadata, "the metadata of a put")
            item = f.Item.parse(cursor, self.lookup_key)
            cursor.finish()
            require(item.sequence == sequence, "the sequence in a frame's metadata is not the frame's")
            secrets[item.lookup_id] = self.secret(item, frame[metadata_end:])
        else:
            secrets.pop(f.parse_remove(metadata, self.lookup_key), None)
        return offset + length, sequence, f.tag(sealed)

    def secret(self, item, sealed):
        require(f.tag(sealed) == item.value_tag, "a value's tag is not that of its metadata")
        associated = f.value_associated(self.header.vault_id, item.lookup_id, item.sequence)
        value = f.unpad(f.open_seal(self.values_key, associated, sealed, "a value"), "a value")
        require(len(value) <= f.MAXIMUM_VALUE, "a value is too long")
        return Secret(item, value, sealed)

"""Known vaults: what was last seen at a place and of a vault, and what a vault found there is judged to be.

The first half is pure: bytes in, values out. The second half has the files.
"""

import errno
import os
import stat
import struct
from dataclasses import dataclass, replace

import vault_changes as c
import vault_format as f
from vault_format import Refused, require
from vault_pins import ACCEPTED, shows

MAGIC, VERSION = b"COFFERK", 1
STRICT, VERSIONED, KEY = 0, 1, 2
POLICIES = {"strict": STRICT, "versioned": VERSIONED}
SLOT = struct.Struct("<7sBBB6s16s32sQ16s32s376s16s")
# The distance between the two slots' sequences at which the roles are exchanged.
EXCHANGE = 64

UNVERIFIABLE = f.UNVERIFIABLE_RECORD
FIRST_USE = "first-use"


@dataclass(frozen=True)
class Slot:
    policy: int
    vault_id: bytes
    commitment: bytes
    sequence: int
    tail_tag: bytes
    mac: bytes
    only_here: bool = False

    def authenticated(self):
        fields = self.policy, self.only_here, bytes(6), self.vault_id, self.commitment, self.sequence, self.tail_tag
        return struct.pack("<BB6s16s32sQ16s", *fields)

    def encode(self):
        slot = (MAGIC + bytes([VERSION]) + self.authenticated() + self.mac).ljust(496, b"\0")
        return slot + f.blake2b(128, slot)

    @classmethod
    def parse(cls, data):
        """The slot, or None for an invalid one. `Refused` if a later program wrote it."""
        magic, version, policy, scope, zero, vault_id, commitment, sequence, tag, mac, zeros, checksum = SLOT.unpack(data)
        if f.blake2b(128, data[:496]) != checksum or magic != MAGIC:
            return None
        require(version == VERSION, f"the record is of version {version}", outcome=f.UNSUPPORTED_VERSION)
        if any(zero) or any(zeros) or policy not in (STRICT, VERSIONED, KEY) or scope > 1 or sequence >= f.U64_LIMIT:
            return None
        if policy == KEY and scope or not sequence:
            return None
        return cls(policy, vault_id, commitment, sequence, tag, mac, bool(scope))


def slot_mac(key, text, slot):
    message = b"coffer-known-vault" + struct.pack("<I", len(text)) + text + slot.authenticated()
    return f.blake2b(256, message, key)


def vault_subject(vault_id):
    """The subject of a vault's record, which is no path."""
    return b"\0" + vault_id.hex().encode()


@dataclass(frozen=True)
class Record:
    text: bytes
    slots: tuple  # None for an invalid one

    @classmethod
    def parse(cls, data, subject):
        """The record about the path or the vault `subject`; `Refused` if it is damaged."""
        text, of_vault = data[2 * SLOT.size + 2 :], subject.startswith(b"\0")
        whole = data[2 * SLOT.size :] == struct.pack("<H", len(text) & 0xFFFF) + text
        named = text.startswith(subject) if of_vault else text == subject
        damaged = "the record of this place or vault is damaged"
        # Of a record of a later version, only the place of the slots is known.
        require(len(data) >= 2 * SLOT.size, damaged, outcome=UNVERIFIABLE)
        slots = tuple(Slot.parse(data[at : at + SLOT.size]) for at in (0, SLOT.size))
        require(whole and named, damaged, outcome=UNVERIFIABLE)
        fits = lambda slot: vault_subject(slot.vault_id) == subject if slot.policy == KEY else not of_vault
        slots = tuple(slot if slot and fits(slot) else None for slot in slots)
        require(any(slots), damaged, outcome=UNVERIFIABLE)
        return cls(text, slots)

    @property
    def current(self):
        """The index of the current slot."""
        first, second = self.slots
        if first is None or second is None:
            return 0 if first else 1
        return 0 if first.sequence >= second.sequence else 1

    @property
    def seen(self):
        return self.slots[self.current]

    @property
    def is_half_damaged(self):
        return None in self.slots


def judge_identity(record, vault_id):
    """The part of the judgement that needs no key. It comes before a key is tried."""
    if record:
        require(vault_id == record.seen.vault_id, "another vault was seen at this place", outcome=f.ANOTHER_VAULT)


def judge(record, vault, of_vault=None):
    """`FIRST_USE`, `ACCEPTED`, or `Refused`. `of_vault` is the record of the vault, if there is one."""
    judge_identity(record, vault.header.vault_id)
    judgement = judge_record(record, vault) if record else FIRST_USE
    if of_vault and not (record and record.seen.only_here):
        judge_record(of_vault, vault)
        if judgement == FIRST_USE:
            judge_state(of_vault.seen, vault)
    return judgement


def judge_record(record, vault):
    seen = record.seen
    own_key = f.subkey(vault.master, f.KNOWN_VAULTS)
    if seen.commitment == vault.header.commitment:
        authentic = f.equal(slot_mac(own_key, record.text, seen), seen.mac)
        require(authentic, "the record of this place is not authentic", outcome=UNVERIFIABLE)
    else:
        descends = any(f.equal(slot_mac(key, record.text, seen), seen.mac) for key in vault.root.lineage)
        require(descends, "the vault does not descend from the one seen at this place", outcome=f.ANOTHER_KEY)
        newer = seen.policy != STRICT or vault.root.sequence > seen.sequence
        require(newer, "the vault was rewritten before what was seen at this place", outcome=f.ANOTHER_KEY)
    if seen.policy == STRICT:
        judge_state(seen, vault)
    return ACCEPTED


def judge_state(seen, vault):
    shown = shows(vault, seen.sequence, lambda tag: tag == seen.tail_tag)
    require(shown is not False, f"change {seen.sequence} was seen before, or with another tag", outcome=f.ROLLED_BACK)


# Making and raising


def seen_now(vault, text, policy, only_here=False):
    """The slot for the vault's present state."""
    header, state = vault.header, vault.state
    slot = Slot(policy, header.vault_id, header.commitment, state.sequence, state.tail_tag, b"", only_here)
    return replace(slot, mac=slot_mac(f.subkey(vault.master, f.KNOWN_VAULTS), text, slot))


def made(vault, text, policy, only_here=False):
    """A new record."""
    slot = seen_now(vault, text, policy, only_here).encode()
    return slot + slot + struct.pack("<H", len(text)) + text


def made_of_vault(vault, path):
    """A new record of the vault, whose master key was seen at `path`."""
    return made(vault, vault_subject(vault.header.vault_id) + path, KEY)


@dataclass(frozen=True)
class Raise:
    """What brings a record up to date. `written` is None, "A", "B" or "anew"; `sync` comes before it."""

    written: str | None
    data: bytes
    sync: bool = False


def raised(data, vault, path, of_vault=False):
    """The `Raise` for the record `data` of the place `path`, or of a vault at that place, which `judge` has accepted."""
    record = Record.parse(data, vault_subject(vault.header.vault_id) if of_vault else path)
    seen = record.seen
    now = seen_now(vault, record.text, seen.policy, seen.only_here)
    moves_back = seen.policy == VERSIONED and now != seen and now.sequence <= seen.sequence
    if now.commitment != seen.commitment or moves_back:
        anew = made_of_vault(vault, path) if of_vault else made(vault, path, seen.policy, seen.only_here)
        return Raise("anew", anew)
    if of_vault and shows(vault, seen.sequence, lambda tag: tag == seen.tail_tag) is False:
        return Raise(None, data)  # another branch is not the newest state
    if now.sequence < seen.sequence or now.sequence == seen.sequence and not record.is_half_damaged:
        return Raise(None, data)
    current, other = record.current, 1 - record.current
    index, sync = other, True
    distance = EXCHANGE if record.is_half_damaged else seen.sequence - record.slots[other].sequence
    if distance < EXCHANGE:
        # Slot B if both are alike, else the slot that was written last.
        index, sync = current if distance else 1, False
    start = index * SLOT.size
    return Raise("AB"[index], data[:start] + now.encode() + data[start + SLOT.size :], sync)


# Files


def absolute(path):
    """The place that `path` names, as bytes. Links are not resolved and `..` is kept."""
    path = os.path.join(working_directory(), os.fsencode(path))
    return b"/" + b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))


def working_directory():
    """The path by which a shell entered the working directory, if it is known."""
    named = os.environb.get(b"PWD", b"")
    if named.startswith(b"/"):
        try:
            if os.path.samefile(named, b"."):
                return named
        except OSError:
            pass  # it names nothing
    return os.getcwdb()


def places(path):
    """The path as named, with its directory resolved, and resolved as a whole, each once."""
    named, path = absolute(path), os.fsencode(path)
    in_directory = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return list(dict.fromkeys([named, in_directory, os.path.realpath(path)]))


def directory():
    home = os.environ.get("XDG_STATE_HOME", "")
    if not home.startswith("/"):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "coffer", "known-vaults")


def record_name(place):
    return f.blake2b(128, place).hex()


def is_absent(folder):
    """Whether nothing has the name `folder`, and no link that leads nowhere is above it."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder)


def read_record(path, place):
    """The bytes and the record in the file at `path`; (None, None) if it is missing."""
    try:
        folder = os.path.dirname(os.path.abspath(path))
        status = os.stat(folder)
        own = status.st_uid == os.geteuid() and status.st_mode & 0o022 == 0
        require(own, "the directory of the record is not this user's alone", outcome=UNVERIFIABLE)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        require(is_absent(folder), "the directory of the record is a link that leads nowhere", outcome=UNVERIFIABLE)
        return None, None
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EIO):
            raise  # this says nothing about the vault
        raise Refused(UNVERIFIABLE, f"the record cannot be opened: {errno.errorcode.get(error.errno)}") from None
    try:
        status = os.fstat(descriptor)
        private = stat.S_ISREG(status.st_mode) and status.st_mode & 0o077 == 0
        require(
            private and status.st_uid == os.geteuid(), "the record is not a private file of this user", outcome=UNVERIFIABLE
        )
        data = c.read_whole(descriptor)
    finally:
        os.close(descriptor)
    return data, Record.parse(data, place)


def remember_of_vault(path, place, vault):
    """Makes or raises the record at `path` of a vault that was found at `place`. Returns what was written."""
    data, _ = read_record(path, vault_subject(vault.header.vault_id))
    if data is None:
        c.write_new_file(path, made_of_vault(vault, place))
        return "anew"
    with c.locked(path, timeout=2, flags=os.O_NOFOLLOW) as descriptor:
        data = c.read_whole(descriptor)
        judge_record(Record.parse(data, vault_subject(vault.header.vault_id)), vault)
        return write(raised(data, vault, place, of_vault=True), path, descriptor, lambda text: made(vault, text, KEY))


def write(change, path, descriptor, anew):
    """Carries out a `Raise`, in a new file if the record has several links. Returns what was written."""
    if change.written and os.fstat(descriptor).st_nlink > 1 and change.written != "anew":
        change = Raise("anew", anew(change.data[2 * SLOT.size + 2 :]))
    if change.written == "anew":
        c.replace_file(path, change.data)
    elif change.written:
        if change.sync:
            os.fdatasync(descriptor)
        index = "AB".index(change.written)
        c.write_at(descriptor, index * SLOT.size, change.data[index * SLOT.size :][: SLOT.size])
    return change.written


def remember(path, place, vault, policy=None):
    """Makes or raises the record at `path` for a vault on the disk, after judging it. Returns what was written.

    With a policy the record is made anew whatever it holds: a person has accepted the vault.
    """
    data, record = (None, None) if policy is not None else read_record(path, place)
    if data is None:
        fresh = made(vault, place, policy or STRICT)
        os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
        if policy is None:
            c.write_new_file(path, fresh)
        else:
            c.replace_file(path, fresh)
        return "anew"
    with c.locked(path, timeout=2, flags=os.O_NOFOLLOW) as descriptor:
        data = c.read_whole(descriptor)
        record = Record.parse(data, place)
        judge(record, vault)
        anew = lambda text: made(vault, text, record.seen.policy, record.seen.only_here)
        return write(raised(data, vault, place), path, descriptor, anew)

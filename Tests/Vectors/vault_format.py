"""The vault file, format 1: the primitives, the header, the commit slots and the leases. Records are in vault_records.py.

Written from VaultFormat.md alone. This module reads and writes no file, and uses no random number and no clock.
"""

import base64
import hashlib
import struct
from dataclasses import dataclass

from nacl import bindings, exceptions

# Every u64 is below this limit.
U64_LIMIT = 1 << 62

MAGIC = b"\x89COF\r\n\x1a\n"
VERSION = 1
PAGE = 4096
# Both commit slots and the page of leases.
PAGES = 3 * PAGE
MAXIMUM_HEADER = 1 << 20
MAXIMUM_KEY_SLOTS = 240
SEAL_OVERHEAD = 40
PADDING = 32
MAXIMUM_VALUE = 16_777_216
MAXIMUM_BLOCK = 1 << 20
MAXIMUM_ROOT = 1 << 20
# The most bytes that all frames may have without their values.
MAXIMUM_TAIL = 1 << 20

KEY_TEXT_PREFIX = b"coffer-key-v1:"

# The numbers of the subkeys.
HEADER, COMMITS, FRAMES, VALUES, BASE, FRAME_LENGTHS, KNOWN_VAULTS, LINEAGE = range(1, 9)

# The outcomes of the specification.
OK = "ok"
RECOVERED = "recovered"
NOT_A_VAULT = "not-a-vault"
UNSUPPORTED_VERSION = "unsupported-version"
TAMPERED = "tampered"
WRONG_KEY = "wrong-key"
COST_LIMIT_EXCEEDED = "cost-limit-exceeded"
INVALID_KEY = "invalid-key"
READ_ONLY = "read-only"
LIMIT_REACHED = "limit-reached"
ROLLED_BACK = "rolled-back"
ANOTHER_VAULT = "another-vault"
ANOTHER_KEY = "another-key"
UNVERIFIABLE_RECORD = "unverifiable-record"


class Refused(Exception):
    """The file or the key is refused. `outcome` is the kind of refusal, `reason` explains it, and `check` is the number that
    VaultFormat.md gives the check."""

    def __init__(self, outcome, reason, check=""):
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.check = check


# The numbers of checks that are left out. For the test that each has a vector.
left_out = set()


def require(condition, reason, check="", outcome=TAMPERED):
    if not condition and not (check and check in left_out):
        raise Refused(outcome, reason, check)


# Primitives


def blake2b(bits, message, key=b""):
    return hashlib.blake2b(message, digest_size=bits // 8, key=key).digest()


def subkey(master, number):
    """`crypto_kdf_derive_from_key`, context `coffer01`, 32 bytes."""
    return hashlib.blake2b(
        b"", digest_size=32, key=master, salt=struct.pack("<QQ", number, 0), person=b"coffer01" + bytes(8)
    ).digest()


def seal(key, nonce, associated, plaintext):
    return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def open_seal(key, associated, sealed, what, check="N8"):
    require(len(sealed) >= SEAL_OVERHEAD, f"{what} is too short for a seal", check)
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[24:], associated, sealed[:24], key)
    except exceptions.CryptoError:
        require(False, f"{what} does not open", check)
    # The check is left out: what a reader without authentication decrypts. The seal of zeros is the key stream.
    stream = seal(key, sealed[:24], b"", bytes(len(sealed) - SEAL_OVERHEAD))[24:-16]
    return bytes(a ^ b for a, b in zip(stream, sealed[24:-16]))


def tag(sealed):
    """The tag of a seal."""
    return sealed[-16:]


def pad(plaintext):
    return plaintext + b"\x80" + bytes(-(len(plaintext) + 1) % PADDING)


def unpad(padded, what):
    require(padded and len(padded) % PADDING == 0, f"{what} is not a multiple of {PADDING} bytes", "N5")
    body = padded.rstrip(b"\0")
    zeros = len(padded) - len(body)
    require(zeros < PADDING and body.endswith(b"\x80"), f"{what} is not padded as it must be", "N5")
    return body[:-1]


def masked_length(length_key, nonce, length):
    """The length of a frame's padded metadata, masked or unmasked: the same operation."""
    mask = bindings.crypto_shorthash_siphash24(nonce, length_key[:16])
    return bytes(a ^ b for a, b in zip(length, mask))


def argon2id(passphrase, salt, passes, memory_kib):
    return bindings.crypto_pwhash_alg(
        32, passphrase, salt, passes, memory_kib * 1024, bindings.crypto_pwhash_ALG_ARGON2ID13
    )


def equal(left, right):
    """Whether both are equal, compared in constant time."""
    return len(left) == len(right) and bindings.sodium_memcmp(left, right)


# Key text


def key_text(key):
    return KEY_TEXT_PREFIX + base64.urlsafe_b64encode(key + blake2b(256, KEY_TEXT_PREFIX + key)[:4])


def parse_key_text(text):
    """Returns the 32 bytes of the key in `text`. One LF may follow the key."""
    text = text.removesuffix(b"\n")
    require(text.startswith(KEY_TEXT_PREFIX), "the key does not begin with coffer-key-v1:", outcome=INVALID_KEY)
    body = text[len(KEY_TEXT_PREFIX) :]
    require(len(body) == 48, "the key is not 48 characters long", outcome=INVALID_KEY)
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    require(all(c in alphabet for c in body), "a character of the key is not base64url", outcome=INVALID_KEY)
    decoded = base64.urlsafe_b64decode(body)
    key, checksum = decoded[:32], decoded[32:]
    require(blake2b(256, KEY_TEXT_PREFIX + key)[:4] == checksum, "the key is mistyped", outcome=INVALID_KEY)
    return key


# Bytes to values


class Cursor:
    """Reads fields in sequence. Refuses missing and left-over bytes."""

    def __init__(self, data, what):
        self.data, self.position, self.what = data, 0, what

    def take(self, count):
        require(count <= len(self.data) - self.position, f"{self.what} is cut short", "N2")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def u8(self):
        return self.number("B")

    def u16(self):
        return self.number("H")

    def u32(self):
        return self.number("I")

    def u64(self):
        value = self.number("Q")
        require(value < U64_LIMIT, f"a number of {self.what} is 2^62 or more", "N1")
        return value

    def sequence(self):
        value = self.u64()
        require(value > 0, f"a sequence of {self.what} is 0", "N9")
        return value

    def i64(self):
        return self.number("q")

    def reserved(self, count, check="N4"):
        require(not any(self.take(count)), f"a reserved byte of {self.what} is not zero", check)

    def text(self, minimum, maximum, check):
        return self.utf8(self.u16(), minimum, maximum, check)

    def utf8(self, length, minimum, maximum, check):
        require(minimum <= length <= maximum, f"a text of {self.what} has {length} bytes", check)
        text = self.take(length).decode("utf-8", "surrogateescape")
        require(not any("\udc80" <= one <= "\udcff" for one in text), f"a text of {self.what} is not UTF-8", "N6")
        require("\0" not in text, f"a text of {self.what} has a NUL in it", "N6")
        return text

    def finish(self):
        require(self.position == len(self.data), f"something follows {self.what}", "N2")


def encode_text(text):
    encoded = text.encode("utf-8")
    return struct.pack("<H", len(encoded)) + encoded


# Header


@dataclass(frozen=True)
class KeySlot:
    """A key slot of the header. The fields after `known` are only set if the slot is known."""

    raw: bytes
    type: int
    version: int
    known: bool
    header: bytes = b""
    id: bytes = b""
    created: int = 0
    label: str = ""
    passes: int = 0
    memory_kib: int = 0
    salt: bytes = b""
    recipient: bytes = b""
    share: bytes = b""  # an ephemeral public key, or the ciphertext of the KEM
    commitment: bytes = b""
    wrapped: bytes = b""  # nonce ‖ wrapped master key


@dataclass(frozen=True)
class Header:
    raw: bytes  # bytes 0…H − 1
    length: int  # L
    read_only_compatible: int
    compatible: int
    vault_id: bytes
    file_id: bytes
    slots: tuple
    commitment: bytes
    mac: bytes


PASSPHRASE_SLOT, KEY_SLOT, X25519_SLOT, HYBRID_SLOT = 1, 2, 3, 4
# The lengths of the recipient and of the share in the slot.
RECIPIENTS = {X25519_SLOT: (32, 32), HYBRID_SLOT: (1216, 1120)}


def parse_key_slot(cursor):
    start = cursor.position
    kind, version, length = cursor.u8(), cursor.u8(), cursor.u16()
    require(length >= 4, "a key slot is shorter than its own beginning", "K1")
    cursor.position = start
    raw = cursor.take(length)
    if kind not in (PASSPHRASE_SLOT, KEY_SLOT, *RECIPIENTS) or version != 1:
        return KeySlot(raw, kind, version, known=False)
    fields = Cursor(raw, "a key slot")
    fields.take(4)
    slot_id, created = fields.take(16), fields.i64()
    label = fields.utf8(fields.u8(), 0, 64, "K2")
    parameters = {}
    if kind == PASSPHRASE_SLOT:
        parameters = {"passes": fields.u32(), "memory_kib": fields.u32()}
        cheap = parameters["memory_kib"] < 8 or parameters["passes"] < 1
        require(not cheap, "a key slot asks for less than the least cost", "K3")
    if kind in RECIPIENTS:
        recipient, share = RECIPIENTS[kind]
        parameters = {"recipient": fields.take(recipient), "share": fields.take(share)}
    else:
        parameters["salt"] = fields.take(16)
    header = raw[: fields.position]
    commitment, wrapped = fields.take(32), fields.take(24 + 48)
    fields.finish()
    return KeySlot(
        raw, kind, version, True, header, slot_id, created, label, commitment=commitment, wrapped=wrapped, **parameters
    )


def parse_header(file):
    """Parses the header of `file`, without authenticating it."""
    require(file[:8] == MAGIC, "the magic is not there", "H1", outcome=NOT_A_VAULT)
    cursor = Cursor(file, "the header")
    cursor.take(8)
    version, incompatible = cursor.u32(), cursor.u32()
    require(version == VERSION, f"the version is {version}", "H2", outcome=UNSUPPORTED_VERSION)
    require(incompatible == 0, f"the incompatible bits are {incompatible:#x}", "H2", outcome=UNSUPPORTED_VERSION)
    read_only_compatible, compatible, length = cursor.u32(), cursor.u32(), cursor.u32()
    vault_id, file_id = cursor.take(16), cursor.take(16)
    count = cursor.u8()
    cursor.reserved(3)
    require(length <= MAXIMUM_HEADER, f"the header is {length} bytes long", "H4")
    require(1 <= count <= MAXIMUM_KEY_SLOTS, f"there are {count} key slots", "H5")
    slots = tuple(parse_key_slot(cursor) for _ in range(count))
    ids = [slot.id for slot in slots if slot.known]
    require(len(set(ids)) == len(ids), "two key slots have the same id", "H6")
    recipients = [(slot.type, slot.recipient) for slot in slots if slot.recipient]
    require(len(set(recipients)) == len(recipients), "two key slots have the same recipient", "H6")
    require(cursor.position == length - 64, "the key slots do not end where the header says", "H7")
    cursor.position = length - 64
    commitment, mac = cursor.take(32), cursor.take(32)
    padded_length = -(-length // PAGE) * PAGE
    cursor.reserved(padded_length - length, "H8")
    return Header(
        file[:padded_length],
        length,
        read_only_compatible,
        compatible,
        vault_id,
        file_id,
        slots,
        commitment,
        mac,
    )


def slot_keys(secret, vault_id, slot_header):
    """Returns the key-encryption key and the commitment of a key slot."""
    context = b"coffer-recipient-slot" if slot_header[0] in RECIPIENTS else b"coffer-key-slot"
    both = blake2b(512, context + vault_id + slot_header, secret)
    return both[:32], both[32:]


def master_commitment(master, vault_id):
    return blake2b(256, b"coffer-master-key" + vault_id, master)


def header_mac(master, authenticated):
    return blake2b(256, authenticated, subkey(master, HEADER))


# Commit slots

STATE = struct.Struct("<QQ16sQII16s3992s")
SHORTEST_ROOT = 72 + 4  # without fields and entries


@dataclass(frozen=True)
class State:
    sequence: int
    end: int
    tail_tag: bytes
    base_end: int
    root_length: int
    root_tag: bytes

    @property
    def root_offset(self):
        return self.base_end - self.root_length

    def encode(self):
        numbers = self.sequence, self.end, self.tail_tag, self.base_end, self.root_length
        return STATE.pack(*numbers, 0, self.root_tag, bytes(3992))

    @classmethod
    def parse(cls, data, header_size, file_size):
        sequence, end, tail, base_end, length, zero, root, zeros = STATE.unpack(data)
        require(zero == 0 and not any(zeros), "a reserved byte of a commit slot is not zero", "N4")
        require(max(sequence, end, base_end) < U64_LIMIT, "a number of a commit slot is 2^62 or more", "N1")
        longest = SEAL_OVERHEAD + MAXIMUM_ROOT
        require(sequence > 0, "the sequence of a commit slot is 0", "N9")
        require(SEAL_OVERHEAD + SHORTEST_ROOT <= length <= longest, "the root is too short or too long", "C1")
        require(header_size + PAGES <= base_end - length, "the root lies before the base", "C1")
        require(base_end <= end <= file_size, "the end is before the base's or after the file's", "C2")
        require(end != base_end or tail == root, "there is no frame, and the tail tag is not the root's", "C3")
        return cls(sequence, end, tail, base_end, length, root)


def commit_associated(index, mac):
    return b"coffer-commit" + bytes([index]) + mac


# Leases

LEASES = struct.Struct("<QQ")
LEASE = struct.Struct("<16s16sQ")
MAXIMUM_LEASES = 100


@dataclass(frozen=True)
class Leases:
    """The page of leases."""

    counter: int = 0  # 0: the page is zeros
    leases: tuple = ()  # of (lookup id, taking, end), ascending

    def moved(self):
        """The same leases in another file."""
        return Leases(self.counter + 1, self.leases) if self.counter else self

    def encode(self):
        data = LEASES.pack(self.counter, len(self.leases)) + b"".join(LEASE.pack(*one) for one in self.leases)
        return data.ljust(PAGE - SEAL_OVERHEAD, b"\0")

    @classmethod
    def parse(cls, data):
        cursor = Cursor(data, "the page of leases")
        counter, count = cursor.u64(), cursor.u64()
        require(count <= MAXIMUM_LEASES, f"there are {count} leases", "L1")
        leases = []
        for _ in range(count):
            leases.append((cursor.take(16), cursor.take(16), cursor.u64()))
            require(len(leases) == 1 or leases[-2][0] < leases[-1][0], "the leases do not ascend", "L2")
        cursor.reserved(len(data) - cursor.position)
        return cls(counter, tuple(leases))


def leases_associated(mac):
    return b"coffer-leases" + mac

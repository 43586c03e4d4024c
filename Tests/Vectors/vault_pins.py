"""Pins: a state of a vault that somebody wrote down elsewhere, and what the vault must show of it."""

import base64
import struct
from dataclasses import dataclass

import vault_format as f
from vault_format import require

ACCEPTED = "accepted"
UNVERIFIABLE_PIN = "unverifiable"
PIN_PREFIX = "coffer-pin-v1:"
PIN = struct.Struct("<16s32sQ16s")
INVALID_PIN = "invalid-pin"


@dataclass(frozen=True)
class Pin:
    vault_id: bytes
    commitment: bytes
    sequence: int = 0  # 0: an identity pin, without a floor and a digest
    digest: bytes = bytes(16)

    def encode(self):
        data = PIN.pack(self.vault_id, self.commitment, self.sequence, self.digest)
        return PIN_PREFIX + base64.urlsafe_b64encode(data + pin_checksum(data)).decode()

    @classmethod
    def parse(cls, text):
        require(text.startswith(PIN_PREFIX), "a pin begins with coffer-pin-v1:", outcome=INVALID_PIN)
        body = text[len(PIN_PREFIX) :]
        known = all(one.isascii() and (one.isalnum() or one in "-_") for one in body)
        require(len(body) == 100 and known, "a pin has 100 characters of base64url", outcome=INVALID_PIN)
        data = base64.urlsafe_b64decode(body)
        require(pin_checksum(data[:72]) == data[72:], "the pin is mistyped", outcome=INVALID_PIN)
        pin = cls(*PIN.unpack(data[:72]))
        require(pin.sequence < f.U64_LIMIT, "the pin has a sequence of 2^62 or more", outcome=INVALID_PIN)
        require(pin.sequence or not any(pin.digest), "the pin has a digest and no sequence", outcome=INVALID_PIN)
        return pin


def pin_checksum(data):
    return f.blake2b(256, PIN_PREFIX.encode() + data)[:3]


def pin_digest(vault, sequence, tag):
    key, header = f.subkey(vault.master, f.KNOWN_VAULTS), vault.header
    message = b"coffer-pin" + header.vault_id + header.commitment + struct.pack("<Q", sequence) + tag
    return f.blake2b(128, message, key)


def pin_of(vault):
    state, header = vault.state, vault.header
    digest = pin_digest(vault, state.sequence, state.tail_tag)
    return Pin(header.vault_id, header.commitment, state.sequence, digest)


def judge_pin_identity(pin, header):
    """The part of the judgement that needs no key. It comes before a key is tried."""
    require(pin.vault_id == header.vault_id, "the pin names another vault", outcome=f.ANOTHER_VAULT)
    require(pin.commitment == header.commitment, "the pin names another master key", outcome=f.ANOTHER_KEY)


def judge_pin(pin, vault):
    """`ACCEPTED`, `UNVERIFIABLE_PIN` if the file does not show the pinned state any more, or `Refused`."""
    judge_pin_identity(pin, vault.header)
    if pin.sequence == 0:
        return ACCEPTED
    shown = shows(vault, pin.sequence, lambda tag: f.equal(pin_digest(vault, pin.sequence, tag), pin.digest))
    require(shown is not False, "the vault is older than the pin, or has another history", outcome=f.ROLLED_BACK)
    return UNVERIFIABLE_PIN if shown is None else ACCEPTED


def parsed(texts, place_of):
    """The pins with their places, as (place, pin). A pin for every place has None. `place_of` makes a path absolute."""
    pins = []
    for text in texts:
        path, divider, pin = text.rpartition("=")
        require(path or not divider, "a pin begins with =", outcome=INVALID_PIN)
        place = place_of(path.replace("%20", " ").replace("%25", "%")) if divider else None
        pins.append((place, Pin.parse(pin)))
    several = len({pin.vault_id for _, pin in pins}) > 1
    every = all(place is not None for place, _ in pins)
    require(every or not several, "a pin of one of several vaults is for no place", outcome=INVALID_PIN)
    return pins


def judge_pins_identity(pins, places, header):
    """The pins that apply to a vault with these places, after the part of the judgement that needs no key."""
    given, pins = pins, [pin for place, pin in pins if place is None or place in places]
    if not pins:
        pins = [pin for _, pin in given if pin.vault_id == header.vault_id]
    require(pins or not given, "no pin is for the vault", outcome=f.ANOTHER_VAULT)
    another = any(pin.vault_id != header.vault_id for pin in pins)
    require(not another, "a pin names another vault", outcome=f.ANOTHER_VAULT)
    named = [pin for pin in pins if pin.commitment == header.commitment]
    require(named or not pins, "the pins name other master keys", outcome=f.ANOTHER_KEY)
    return named


def judge_pins(pins, vault):
    """`ACCEPTED`, `UNVERIFIABLE_PIN` or `Refused`, of pins that name the vault and its master key: all must hold."""
    judgements = [judge_pin(pin, vault) for pin in pins]
    return UNVERIFIABLE_PIN if UNVERIFIABLE_PIN in judgements else ACCEPTED


def shows(vault, sequence, is_tag):
    """Whether the vault had a state with this sequence and a tag of which `is_tag` holds. None: the file does not show it."""
    if sequence > vault.state.sequence:
        return False
    if sequence < vault.root.floor:
        return None
    pairs = [*vault.recent, (vault.root.sequence, vault.state.root_tag)]
    pairs += [(frame.sequence, frame.tag) for frame in vault.frames]
    return any(one == sequence and is_tag(tag) for one, tag in pairs)

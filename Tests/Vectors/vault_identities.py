"""Recipients and identities as age writes them: Bech32 without its limit of length."""

import vault_format as f
from vault_format import require

ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
IDENTITY, RECIPIENT = "AGE-SECRET-KEY-", "age"
HYBRID_IDENTITY, HYBRID_RECIPIENT = "AGE-SECRET-KEY-PQ-", "age1pq"


def polymod(values):
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> bit & 1 else 0
    return check


def expanded(prefix):
    prefix = prefix.lower()
    return [ord(one) >> 5 for one in prefix] + [0] + [ord(one) & 31 for one in prefix]


def encode(prefix, data):
    bits = int.from_bytes(data, "big") << (-len(data) * 8) % 5
    count = -(-len(data) * 8 // 5)
    values = [bits >> 5 * (count - 1 - at) & 31 for at in range(count)]
    check = polymod(expanded(prefix) + values + [0] * 6) ^ 1
    values += [check >> 5 * (5 - at) & 31 for at in range(6)]
    return written(prefix, values)


def written(prefix, values):
    """The text of values of five bits: in the case of the prefix, as age writes it."""
    body = "".join(ALPHABET[value] for value in values)
    return prefix + "1" + (body.upper() if prefix.isupper() else body)


def decode(text, prefix, length):
    """The bytes of a text in the case of the prefix."""
    require(text.isascii(), "a text of Bech32 is not ASCII", outcome=f.INVALID_KEY)
    body = text[len(prefix) + 1 :]
    alphabet = ALPHABET.upper() if prefix.isupper() else ALPHABET
    right = text.startswith(prefix + "1") and all(one in alphabet for one in body)
    require(right, f"this does not begin with {prefix}1, or is not Bech32", outcome=f.INVALID_KEY)
    values = [alphabet.index(one) for one in body]
    require(polymod(expanded(prefix) + values) == 1, "this is mistyped", outcome=f.INVALID_KEY)
    bits, count = 0, len(values) - 6
    for value in values[:-6]:
        bits = bits << 5 | value
    spare = count * 5 - length * 8
    require(0 <= spare < 5 and bits & (1 << spare) - 1 == 0, "this has a wrong length", outcome=f.INVALID_KEY)
    return (bits >> spare).to_bytes(length, "big")


def parse_identity(text):
    """The bytes of an identity. One LF may follow the text."""
    text = text.removesuffix("\n")
    return decode(text, HYBRID_IDENTITY if text.startswith(HYBRID_IDENTITY) else IDENTITY, 32)


def parse_recipient(text):
    # Without the separator, this would be the beginning of one recipient of X25519 in 1,024 as well.
    hybrid = text.startswith(HYBRID_RECIPIENT + "1")
    return decode(text, HYBRID_RECIPIENT, 1216) if hybrid else decode(text, RECIPIENT, 32)

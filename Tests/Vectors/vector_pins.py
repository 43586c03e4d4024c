"""pins.json: pins, and the judgement of each against the vault of a vector."""

import base64
import json
import os
from dataclasses import replace

import known_vaults as k
import vault_format as f
import vault_pins as pins
import vault_reader as r
from vector_known_vaults import opened
from vector_outcome import credential_of
from vector_suite import edited

OK, BACK, OTHER_KEY, UNVERIFIABLE = pins.ACCEPTED, f.ROLLED_BACK, f.ANOTHER_KEY, pins.UNVERIFIABLE_PIN


class Pins:
    """Collects the entries of pins.json."""

    def __init__(self, suite):
        self.suite, self.entries = suite, []
        self.vectors = {entry["name"]: entry for entry in suite.entries}

    def add(self, name, comment, pin, outcome, vector=None):
        text = pin if isinstance(pin, str) else pin.encode()
        entry = {"name": name, "comment": comment, "pin": text}
        if vector:
            assert vector in self.vectors, vector
            entry["vector"] = vector
        assert all(name != other["name"] for other in self.entries), name
        self.entries.append(entry | {"expect": {"outcome": outcome}})

    def add_several(self, name, comment, texts, outcome, vector, path="/v/prod.vault"):
        """Pins, some of them for places, judged against a vault at `path`."""
        entry = {"name": name, "comment": comment, "pins": texts, "path": path, "vector": vector}
        assert all(name != other["name"] for other in self.entries), name
        self.entries.append(entry | {"expect": {"outcome": outcome}})

    def vault(self, vector):
        return opened(self.suite, self.vectors[vector])


def text(suite):
    made = Pins(suite)
    forms(made)
    judgements(made)
    rekeyed(made)
    several(made)
    return "[\n" + ",\n".join(json.dumps(entry) for entry in made.entries) + "\n]\n"


def replaced(text, index):
    """Replaces the character at `index` by another one of the alphabet."""
    return text[:index] + ("A" if text[index] != "A" else "B") + text[index + 1 :]


def forms(made):
    """The text alone. A valid one is judged against the vault that it was made of."""
    vault, vector, bad = made.vault("ok-known"), "ok-known", pins.INVALID_PIN
    pin = pins.pin_of(vault)
    good, prefix = pin.encode(), pins.PIN_PREFIX
    body = good[len(prefix) :]

    def raw(data):
        return prefix + base64.urlsafe_b64encode(data).decode()

    def checked(**changed):
        return replace(pin, **changed).encode()

    made.add("valid", "a pin", good, OK)
    made.add("identity", "an identity pin: no sequence and no digest", replace(pin, sequence=0, digest=bytes(16)), OK)
    made.add("highest", "the highest sequence", replace(pin, sequence=(1 << 62) - 1), OK)
    made.add("digest-of-zeros", "a sequence, and a digest of zeros", replace(pin, digest=bytes(16)), OK)
    made.add("zeros", "a vault id and a commitment of zeros", pins.Pin(bytes(16), bytes(32)), OK)
    ones = pins.Pin(b"\xff" * 16, b"\xff" * 32, 1, b"\xff" * 16).encode()
    made.add("ones", "a pin with _ and - in its text", ones, OK)
    made.add("sequence-2-62", "a sequence of 2^62", checked(sequence=1 << 62), bad)
    made.add("sequence-2-63", "a sequence of 2^63", checked(sequence=1 << 63), bad)
    made.add("sequence-most", "the highest number of 64 bits", checked(sequence=(1 << 64) - 1), bad)
    made.add("digest-without-sequence", "a digest with the sequence 0", checked(sequence=0), bad)
    made.add(
        "digest-without-sequence-last-byte",
        "a digest whose last byte alone is not zero, with the sequence 0",
        checked(sequence=0, digest=bytes(15) + b"\1"),
        bad,
    )
    made.add("empty", "an empty text", "", bad)
    made.add("prefix-alone", "the prefix alone", prefix, bad)
    made.add("no-prefix", "the pin without its prefix", body, bad)
    made.add("prefix-version", "the prefix of another version", good.replace("v1", "v2"), bad)
    made.add("prefix-case", "the prefix in capitals", good.replace("coffer-pin", "COFFER-PIN"), bad)
    made.add("prefix-twice", "the prefix twice", prefix + good, bad)
    made.add("prefix-no-colon", "the prefix without its colon", good.replace(":", "", 1), bad)
    made.add("prefix-of-key", "the prefix of a key", "coffer-key-v1:" + body, bad)
    made.add("key", "a key", f.key_text(bytes(32)).decode(), bad)
    made.add("space-before", "a space before the pin", " " + good, bad)
    made.add("space-after", "a space after the pin", good + " ", bad)
    made.add("space-after-prefix", "a space after the prefix", prefix + " " + body, bad)
    made.add("one-lf", "one LF after the pin", good + "\n", bad)
    made.add("lf-for-last", "an LF in place of the last character", good[:-1] + "\n", bad)
    made.add("nul-after", "a NUL after the pin", good + "\0", bad)
    made.add("bom", "a byte order mark before the pin", "\ufeff" + good, bad)
    for index, region in ((0, "vault id"), (30, "commitment"), (66, "sequence"), (80, "digest")):
        made.add(
            f"typo-{region.replace(' ', '-')}", f"a typo in the {region}", replaced(good, len(prefix) + index), bad
        )
    for index in (96, 99):
        made.add(f"typo-checksum-{index}", "a typo in the checksum", replaced(good, len(prefix) + index), bad)
    at = next(n for n in range(len(prefix), len(good) - 1) if good[n] != good[n + 1])
    made.add("swapped", "two characters swapped", good[:at] + good[at + 1] + good[at] + good[at + 2 :], bad)
    made.add("case", "letters in the other case", prefix + body.swapcase(), bad)
    made.add("short", "the last character is missing", good[:-1], bad)
    made.add("short-by-4", "the last four characters are missing", good[:-4], bad)
    made.add("long", "one character too many", good + "A", bad)
    made.add("long-by-4", "four characters too many", good + "AAAA", bad)
    made.add("padded", "base64 padding after the pin", good + "====", bad)
    made.add("padding-within", "base64 padding in place of the last characters", good[:-2] + "==", bad)
    made.add(
        "standard-alphabet",
        "+ and / instead of - and _",
        ones[: len(prefix)] + ones[len(prefix) :].replace("-", "+").replace("_", "/"),
        bad,
    )
    made.add("not-base64", "a character that is not in the alphabet", good[:-1] + "!", bad)
    made.add("not-ascii", "a letter that is not ASCII", good[:-1] + "é", bad)
    made.add("fullwidth", "a digit that is not ASCII", good[:-1] + "１", bad)
    made.add("hexadecimal", "the pin in hexadecimal", prefix + base64.urlsafe_b64decode(body).hex(), bad)
    data = base64.urlsafe_b64decode(body)[:72]
    made.add(
        "checksum-without-prefix", "a checksum of the pin without its prefix", raw(data + f.blake2b(256, data)[:3]), bad
    )
    other = f.blake2b(256, b"coffer-key-v1:" + data)[:3]
    made.add("checksum-of-another-prefix", "a checksum with the prefix of a key", raw(data + other), bad)
    short = f.blake2b(24, prefix.encode() + data)
    made.add("checksum-of-24-bits", "a checksum that is a hash of 24 bits", raw(data + short), bad)
    made.add("checksum-zeros", "a checksum of zeros", raw(data + bytes(3)), bad)
    made.add("invalid-and-vault", "a mistyped pin, and its vault", replaced(good, len(prefix) + 30), bad, vector)


def judgements(made):
    """Pins of the vault `known`, whose root is change 10 and which has changes to 14."""
    vault = made.vault("ok-known")
    tags = {vault.root.sequence: vault.state.root_tag} | {one.sequence: one.tag for one in vault.frames}

    def pin(sequence, tag=None):
        digest = pins.pin_digest(vault, sequence, tag or tags.get(sequence, b"\x07" * 16))
        return replace(pins.pin_of(vault), sequence=sequence, digest=digest)

    another = bytes(16)
    identity = replace(pin(14), sequence=0, digest=bytes(16))
    for name, comment, one, vector, outcome in (
        ("same", "the present state", pin(14), "ok-known", OK),
        ("same-recovered", "the present state, and one slot is damaged", pin(14), "known-slot-0", OK),
        ("tail", "a state of the tail", pin(12), "ok-known", OK),
        ("root", "the state of the root", pin(10), "ok-known", OK),
        ("later", "the present state, and the vault has gone on", pin(14), "ok-known-later", OK),
        ("identity-same", "an identity pin", identity, "ok-known", OK),
        ("identity-earlier", "an identity pin does not see that a vault is older", identity, "ok-known-root-alone", OK),
        ("identity-fork", "an identity pin does not see another history", identity, "ok-known-fork-12-later", OK),
        ("older", "the vault is older: change 13", pin(14), "ok-known-earlier", BACK),
        ("older-root-alone", "the vault is older: its root alone", pin(14), "ok-known-root-alone", BACK),
        ("older-one", "the vault is a change older than the pin", pin(15), "ok-known", BACK),
        ("highest", "a pin of the highest sequence", pin((1 << 62) - 1), "ok-known", BACK),
        ("fork-in-tail", "another history in the tail", pin(14), "ok-known-fork-14", BACK),
        (
            "fork-in-tail-later",
            "another history in the tail, and later changes",
            pin(14),
            "ok-known-fork-14-later",
            BACK,
        ),
        ("fork-12", "another history from change 12 on", pin(12), "ok-known-fork-12-later", BACK),
        ("before-fork", "a state before another history", pin(12), "ok-known-fork-14-later", OK),
        ("another-at-root", "another state at the root", pin(10, another), "ok-known", BACK),
        ("root-of-another", "a root of the pinned sequence", pin(14), "ok-known-rewritten-14", BACK),
        ("root-of-another-later", "the same, and later changes", pin(14), "ok-known-rewritten-14-later", BACK),
        ("another-in-tail", "another state in the tail", pin(12, another), "ok-known", BACK),
        ("digest", "a digest with a flipped bit", replace(pin(14), digest=flipped(pin(14).digest)), "ok-known", BACK),
        (
            "digest-of-another-sequence",
            "a digest of another sequence",
            replace(pin(12), digest=pin(14).digest),
            "ok-known",
            BACK,
        ),
        ("below-floor", "below the floor, which is the root: unverifiable", pin(9), "ok-known", UNVERIFIABLE),
        ("below-floor-1", "the first change", pin(1), "ok-known", UNVERIFIABLE),
        ("below-root", "below a root without recent changes", pin(14), "ok-known-rewritten-15", UNVERIFIABLE),
        ("another-below-root", "the same, another state", pin(14, another), "ok-known-rewritten-15", UNVERIFIABLE),
        ("recent-14", "the last recent change", pin(14), "ok-known-recent", OK),
        ("recent-12", "a recent change", pin(12), "ok-known-recent", OK),
        ("recent-10", "a recent change at the floor", pin(10), "ok-known-recent", OK),
        ("recent-later", "a recent change, and later frames", pin(14), "ok-known-recent-later", OK),
        ("recent-another", "another history in the recent changes", pin(14, another), "ok-known-recent", BACK),
        ("recent-fork", "the recent changes have another history", pin(14), "ok-known-recent-fork", BACK),
        ("recent-before-fork", "a recent change before another history", pin(12), "ok-known-recent-fork", OK),
        ("recent-gap", "between two recent changes, which was no state", pin(12), "ok-known-recent-gap", BACK),
        ("recent-below-floor", "below the floor", pin(9), "ok-known-recent", UNVERIFIABLE),
        ("recent-at-floor", "at a floor without a recent change", pin(9), "ok-known-recent-floor-9", BACK),
        ("recent-below-floor-12", "below the floor", pin(11), "ok-known-recent-floor-12", UNVERIFIABLE),
        (
            "recent-another-below-floor",
            "another state below the floor",
            pin(11, another),
            "ok-known-recent-floor-12",
            UNVERIFIABLE,
        ),
        ("recent-merge", "one side of a merge", pin(14), "ok-known-recent-merge", OK),
        ("recent-merge-other", "the other side of a merge", pin(14, another), "ok-known-recent-merge", OK),
        ("recent-merge-neither", "neither side of a merge", pin(14, b"\1" * 16), "ok-known-recent-merge", BACK),
        ("recent-root", "another state at a root of 15", pin(15), "ok-known-recent", BACK),
        ("another-vault", "another vault", pin(14), "ok-small", f.ANOTHER_VAULT),
        ("another-vault-identity", "an identity pin, and another vault", identity, "ok-small", f.ANOTHER_VAULT),
        (
            "another-vault-wrong-key",
            "another vault, which the key does not open",
            pin(14),
            "wrong-key",
            f.ANOTHER_VAULT,
        ),
        ("another-vault-tampered", "another vault, which is damaged", pin(14), "both-slots-damaged", f.ANOTHER_VAULT),
        (
            "another-vault-id",
            "another vault id and the right commitment",
            replace(pin(14), vault_id=flipped(pin(14).vault_id)),
            "ok-known",
            f.ANOTHER_VAULT,
        ),
        (
            "another-commitment",
            "the right vault id and another commitment",
            replace(pin(14), commitment=flipped(pin(14).commitment)),
            "ok-known",
            OTHER_KEY,
        ),
        (
            "another-commitment-wrong-key",
            "another commitment, and a key that does not open the vault: the pin is judged first",
            replace(pin(14), commitment=flipped(pin(14).commitment)),
            "known-wrong-key",
            OTHER_KEY,
        ),
    ):
        made.add(f"judged-{name}", comment, one, outcome, vector)


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def rekeyed(made):
    """Pins of the vault and of the same vault under its next master key."""
    former, now = made.vault("ok-known"), made.vault("ok-rekeyed")
    old, new = pins.pin_of(former), pins.pin_of(now)
    identity = replace(old, sequence=0, digest=bytes(16))
    for name, comment, one, vector, outcome in (
        ("former-key", "a pin of the former master key", old, "ok-rekeyed", OTHER_KEY),
        ("former-key-recent", "the same, and the changes are in the root", old, "ok-known-rekeyed-recent", OTHER_KEY),
        ("former-key-identity", "an identity pin of the former master key", identity, "ok-rekeyed", OTHER_KEY),
        ("later-key", "a pin of the later master key, and the older vault", new, "ok-known-high", OTHER_KEY),
        ("new-key", "a pin of the new master key", new, "ok-rekeyed", OK),
        ("new-key-later", "the same, and later changes", new, "ok-known-rekeyed-later", OK),
        ("new-key-other-root", "the same, and another root of its sequence", new, "ok-known-rekeyed-recent", BACK),
    ):
        made.add(f"rekeyed-{name}", comment, one, outcome, vector)
    tag = former.state.tail_tag
    before = replace(new, sequence=14, digest=pins.pin_digest(now, 14, tag))
    comment = "a state from before the rekey, in a pin of the new master key"
    made.add("rekeyed-state-before", comment, before, OK, "ok-known-rekeyed-recent")
    made.add("rekeyed-state-before-fork", comment + ": another history", before, BACK, "ok-known-rekeyed-recent-fork")
    made.add("rekeyed-state-before-unknown", comment + ": no recent changes", before, UNVERIFIABLE, "ok-rekeyed")
    under = replace(new, sequence=14, digest=pins.pin_digest(former, 14, tag))
    comment = "the same, with a digest under the former master key"
    made.add("rekeyed-state-under-former", comment, under, BACK, "ok-known-rekeyed-recent")


def several(made):
    """Two pins and more, and pins for places."""
    vault, other = made.vault("ok-known"), made.vault("ok-small")
    rekeyed_vault = made.vault("ok-rekeyed")
    state, known = pins.pin_of(vault), "ok-known"

    def at(sequence, tag=None):
        tags = {vault.root.sequence: vault.state.root_tag} | {one.sequence: one.tag for one in vault.frames}
        digest = pins.pin_digest(vault, sequence, tag or tags.get(sequence, b"\x07" * 16))
        return replace(state, sequence=sequence, digest=digest).encode()

    pin, foreign, successor = state.encode(), pins.pin_of(other).encode(), pins.pin_of(rekeyed_vault).encode()
    identity = replace(state, sequence=0, digest=bytes(16)).encode()
    prod, staging = "/v/prod.vault=", "/v/staging.vault="
    bad, another = pins.INVALID_PIN, f.ANOTHER_VAULT
    for name, comment, texts, vector, outcome in (
        ("both-hold", "two states that the vault was in", [at(12), pin], known, OK),
        ("older-and-newer", "an older state and a newer one, and the older vault", [at(13), pin], "ok-known-earlier", BACK),
        ("newer-and-older", "the same in the other order", [pin, at(13)], "ok-known-earlier", BACK),
        ("identity-and-newer", "an identity pin and a state, and the older vault", [identity, pin], "ok-known-earlier", BACK),
        ("one-contradicted", "a state and another history", [at(12, bytes(16)), pin], known, BACK),
        ("one-below-floor", "a state below the floor, and one that is shown", [at(9), pin], known, UNVERIFIABLE),
        ("below-floor-and-contradicted", "a state below the floor, and one that is not", [at(9), at(15)], known, BACK),
        ("two-keys", "the former key and the new one, and the former vault", [pin, successor], known, OK),
        ("two-keys-new", "the same, and the new vault", [pin, successor], "ok-rekeyed", OK),
        ("two-keys-older", "the same, and an older vault", [successor, pin], "ok-known-earlier", BACK),
        ("neither-key", "two states of the former key, and the new vault", [pin, at(12)], "ok-rekeyed", OTHER_KEY),
        ("two-vaults", "pins of two vaults without places", [pin, foreign], known, bad),
        ("two-vaults-one-place", "pins of two vaults, one of them for a place", [prod + pin, foreign], known, bad),
        ("two-vaults-other-place", "the same with the other one", [pin, staging + foreign], known, bad),
        ("two-places", "pins of two vaults, each for its place", [prod + pin, staging + foreign], known, OK),
        ("exchanged", "the vault of the other place", [prod + pin, staging + foreign], "ok-small", another),
        ("wrong-place", "pins of two vaults, each for the other's place", [staging + pin, prod + foreign], known, another),
        ("one-place", "a pin for the place", [prod + pin], known, OK),
        ("one-place-older", "a pin for the place, and the older vault", [prod + pin], "ok-known-earlier", BACK),
        ("elsewhere", "a pin of another vault for another place", [staging + foreign], known, another),
        ("moved", "a pin of the vault for another place", [staging + pin], known, OK),
        ("moved-older", "the same, and the older vault", [staging + pin], "ok-known-earlier", BACK),
        ("moved-rekeyed", "the same, and the vault with another key", [staging + pin], "ok-rekeyed", OTHER_KEY),
        ("moved-among-others", "the same beside a pin of another vault", [staging + pin, "/v/c=" + foreign], "ok-known-earlier", BACK),
        ("two-copies", "a pin for the place, and a later one for a copy elsewhere", [prod + at(12), staging + pin],
         "ok-known-earlier", OK),
        ("two-at-one-place", "pins of two vaults for one place", [prod + pin, prod + foreign], known, another),
        ("place-and-every", "a pin for the place and one for every place", [prod + at(12), pin], known, OK),
        ("place-and-every-older", "the same, and the older vault", [prod + at(12), pin], "ok-known-earlier", BACK),
        ("no-place", "an = before the pin, and no place", ["=" + pin], known, bad),
        ("no-pin", "a place without a pin", [prod], known, bad),
        ("one-mistyped", "a pin, and a mistyped one", [pin, replaced(pin, 40)], known, bad),
        ("mistyped-elsewhere", "a pin, and a mistyped one for another place", [pin, staging + replaced(pin, 40)], known, bad),
        ("place-empty-components", "a place with a repeated slash and a .", ["//v/./prod.vault=" + foreign], known, another),
        ("place-parent", "a place with .., which is another one", ["/v/x/../prod.vault=" + foreign, prod + pin], known, OK),
    ):
        made.add_several(f"several-{name}", comment, texts, outcome, vector)
    for name, path, text in (
        ("space", "/v/a b.vault", "/v/a%20b.vault="), ("percent", "/v/a%20b.vault", "/v/a%2520b.vault="),
        ("equals", "/v/a=b.vault", "/v/a=b.vault="), ("not-decoded", "/v/a/b", "/v/a%2Fb="),
    ):
        texts = [text + foreign, f"{path}={pin}"] if name == "not-decoded" else [text + foreign]
        outcome = OK if name == "not-decoded" else another
        made.add_several(f"place-{name}", f"the place {path} as {text}", texts, outcome, known, path)


def outcome_of(suite, entry):
    """What this implementation makes of an entry."""
    try:
        if "pins" in entry:
            vector = next(one for one in suite.entries if one["name"] == entry["vector"])
            file = edited(suite.made[vector["vault"].removesuffix(".vault")].file, vector)
            place_of = lambda path: os.fsdecode(k.absolute(path))
            given = pins.parsed(entry["pins"], place_of)
            named = pins.judge_pins_identity(given, [entry["path"]], f.parse_header(file))
            return pins.judge_pins(named, r.read_vault(file, credential_of(vector["credential"])))
        pin = pins.Pin.parse(entry["pin"])
        if pin.encode() != entry["pin"]:
            return "not the text that was read"
        if "vector" not in entry:
            return pins.ACCEPTED
        vector = next(one for one in suite.entries if one["name"] == entry["vector"])
        file = edited(suite.made[vector["vault"].removesuffix(".vault")].file, vector)
        pins.judge_pin_identity(pin, f.parse_header(file))
        return pins.judge_pin(pin, r.read_vault(file, credential_of(vector["credential"])))
    except f.Refused as refused:
        return refused.outcome


def failures(suite, text):
    for entry in json.loads(text):
        found = outcome_of(suite, entry)
        if {"outcome": found} != entry["expect"]:
            yield f"pins.json: {entry['name']}: {entry['expect']['outcome']} expected, {found} found"

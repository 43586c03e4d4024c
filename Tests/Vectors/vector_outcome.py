"""The reader's outcome for a vector, in the form of its `expect`."""

from nacl import bindings

import coffer_vault
import vault_format as f
import vault_identities as identities
import vault_pins as pins
import vault_reader as r
from vector_expect import short_value


def shortened(vault, now):
    """The contents of a vault with short values, without what is empty."""
    read = coffer_vault.contents(vault, now)
    for name in ("items", "versions"):
        read[name] = [one | short_value(one.pop("value")) for one in read[name]]
    if not any(read["history"].values()):
        del read["history"]
    for name in ("outcome", "sequence", "pin", "recent", "floor"):
        del read[name]
    return {name: one for name, one in read.items() if one or name == "items"}


def outcome_of(file, entry):
    """The outcome with what goes with it, and the reason of a refusal."""
    try:
        vault = r.read_vault(file, credential_of(entry["credential"]), r.Limits(**entry.get("limits", {})))
    except f.Refused as refused:
        return {"outcome": refused.outcome}, refused.reason
    outcome = f.RECOVERED if vault.recovered else f.OK
    state = {"outcome": outcome, "sequence": vault.state.sequence, "pin": pins.pin_of(vault).encode()}
    return state | shortened(vault, entry.get("now", 0)), ""


def credential_of(described):
    if "key_text" in described:
        return r.Key(f.parse_key_text(described["key_text"].encode()))
    if "identity" in described:
        text = described["identity"]
        return r.Identity(identities.parse_identity(text), text.startswith(identities.HYBRID_IDENTITY))
    return r.Passphrase(described["passphrase"].encode("utf-8"))


def identity_outcome(entry):
    try:
        identity = identities.parse_identity(entry["text"])
    except f.Refused as refused:
        return {"outcome": refused.outcome}
    if entry["text"].startswith(identities.HYBRID_IDENTITY):  # its recipient needs ML-KEM
        return entry["expect"] if entry["expect"].get("identity") == identity.hex() else {"outcome": f.OK}
    recipient = identities.encode(identities.RECIPIENT, bindings.crypto_scalarmult_base(identity))
    identities.parse_recipient(recipient)
    return {"outcome": f.OK, "identity": identity.hex(), "recipient": recipient}


def key_outcome(entry):
    try:
        return {"outcome": f.OK, "key": f.parse_key_text(entry["text"].encode("utf-8")).hex()}
    except f.Refused as refused:
        return {"outcome": refused.outcome}

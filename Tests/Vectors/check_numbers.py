"""Each numbered check of VaultFormat.md has a vector that only this check refuses, and the bytes that the page shows are those of
the example. Part of `generate.py --check`."""

import json
import os
import re

import commit_check
import vault_described as d
import vault_format as f
import vault_reader as r
from vector_bases import BASES, put
from vector_outcome import credential_of
from vector_suite import edited

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Sources/CofferVault/Vault.docc/VaultFormat.md")


def refusal(file, entry):
    """The number of the check that refuses the file, or None."""
    try:
        r.read_vault(file, credential_of(entry["credential"]), r.Limits(**entry.get("limits", {})))
    except f.Refused as refused:
        return refused.check
    except Exception:  # a check is left out, and what it would have refused leads nowhere
        return None
    return None


def held(refused):
    """The numbers of the checks without which nothing refuses a file that they refuse."""
    found = set()
    for file, entry in refused:
        check = refusal(file, entry)
        if not check or check in found:
            continue
        f.left_out.add(check)
        if refusal(file, entry) is None:
            found.add(check)
        f.left_out.clear()
    return found


def refused_vectors(files):
    for entry in json.loads(files["vectors.json"]):
        if entry["expect"]["outcome"] not in (f.OK, f.RECOVERED):
            yield edited(files[entry["vault"]], entry), entry
    # A value that is too long is too long for a vector that is kept.
    padded = f.pad(bytes(f.MAXIMUM_VALUE + 1))
    tamper = lambda part, value: padded if part == "frame 0 padded value" else value
    description, credential = BASES["created"]
    made = d.NewFile(description | {"tail": [[put("one", "1")]]}, tamper=tamper)
    entry = {"credential": {"key_text": f.key_text(credential["key_text"]).decode()}}
    yield made.file, entry
    # So is a root that is too long.
    yield d.NewFile(commit_check.with_root(longer=1)).file, entry


def wrong_digits(page, files):
    """The bytes that the page's example shows, and that are not in the example."""
    known = re.sub(r"\s", "", re.sub(r"(?m)^.{22}", "", files["example.txt"].decode())) + files["example.vault"].hex()
    for block in re.findall(r"(?ms)^```\n(.*?)^```", page):
        yield from (one for one in re.findall(r"\b[0-9a-f]{16,}", block) if one not in known)
        if re.match(r"[0-9a-f]{32} ", block):  # the record, without its padding
            record = "".join(re.findall(r"(?m)^((?:[0-9a-f]+ )+) ", block)).replace(" ", "")
            yield from [] if record in known else [record]


def failures(files):
    with open(PAGE, encoding="utf-8") as stream:
        page = stream.read()
    for digits in wrong_digits(page, files):
        yield f"VaultFormat.md shows bytes that the example does not have: {digits}"
    numbers = set(re.findall(r"\*\*([A-Z]\d+)\*\*", page))
    found = held(refused_vectors(files))
    for number in sorted(numbers - found):
        yield f"no vector is refused by the check {number} alone"
    for number in sorted(found - numbers):
        yield f"VaultFormat.md has no check {number}"

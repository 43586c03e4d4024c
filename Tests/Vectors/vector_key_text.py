"""key_text.json: valid and invalid texts of keys."""

import json

import vault_format as f
from vector_bases import CI_KEY

PREFIX = f.KEY_TEXT_PREFIX.decode()


def replaced(text, index):
    """Replaces the character at `index` by another one of the alphabet."""
    return text[:index] + ("A" if text[index] != "A" else "B") + text[index + 1 :]


def text():
    good = f.key_text(CI_KEY).decode()
    all_ones, zeros = f.key_text(b"\xff" * 32).decode(), f.key_text(bytes(32)).decode()
    body = good[len(PREFIX) :]
    swapped = next(i for i in range(len(PREFIX), len(good) - 1) if good[i] != good[i + 1])
    entries = []

    def add(name, comment, text, key=None):
        expect = {"outcome": f.OK, "key": key.hex()} if key else {"outcome": f.INVALID_KEY}
        entries.append({"name": name, "comment": comment, "text": text, "expect": expect})

    add("valid", "a key", good, CI_KEY)
    add("one-lf", "one LF after the key, which is allowed", good + "\n", CI_KEY)
    add("zeros", "a key of zeros", zeros, bytes(32))
    add("ones", "a key with - and _ in its text", all_ones, b"\xff" * 32)
    add("two-lfs", "two LFs after the key", good + "\n\n")
    add("crlf", "CR LF after the key", good + "\r\n")
    add("cr", "CR after the key", good + "\r")
    add("space-after", "a space after the key", good + " ")
    add("space-after-prefix", "a space after the prefix", PREFIX + " " + body)
    add("space-before", "a space before the key", " " + good)
    add("lf-before", "an LF before the key", "\n" + good)
    add("lf-within", "an LF within the key", good[:40] + "\n" + good[40:])
    add("bom", "a byte order mark before the key", "\ufeff" + good)
    add("nul-after", "a NUL after the key", good + "\0")
    add("two-keys", "two keys, one on each line", good + "\n" + zeros + "\n")
    add("quoted", "the key in quotes", f'"{good}"')
    add("empty", "an empty text", "")
    add("only-lf", "an LF alone", "\n")
    add("prefix-alone", "the prefix alone", PREFIX)
    add("no-prefix", "the key without its prefix", body)
    add("prefix-version", "the prefix of another version", good.replace("v1", "v2"))
    add("prefix-case", "the prefix in capitals", good.replace("coffer", "COFFER"))
    add("prefix-twice", "the prefix twice", PREFIX + good)
    add("prefix-no-colon", "the prefix without its colon", good.replace(":", "", 1))
    add("typo-prefix", "a typo in the prefix", good.replace("coffer", "cofer"))
    for index, region in ((0, "first character"), (20, "middle"), (42, "character with the key's last bits")):
        add(f"typo-{region.split()[0]}-{index}", f"a typo in the key: {region}", replaced(good, len(PREFIX) + index))
    for index in (43, 47):
        add(f"typo-checksum-{index}", "a typo in the checksum", replaced(good, len(PREFIX) + index))
    add("swapped", "two characters swapped", good[:swapped] + good[swapped + 1] + good[swapped] + good[swapped + 2 :])
    add("case", "letters in the other case", PREFIX + body.swapcase())
    add("short", "the last character is missing", good[:-1])
    add("no-checksum", "the key without its checksum", good[: len(PREFIX) + 43])
    add("long", "one character too many", good + "A")
    add("padded", "a key with base64 padding", good + "====")
    add("standard-alphabet", "+ and / instead of - and _", all_ones.replace("-", "+").replace("_", "/"))
    add("not-base64", "a character that is not in the alphabet", good[:-1] + "!")
    add("not-ascii", "a letter that is not ASCII", good[:-1] + "é")
    add("fullwidth", "a digit that is not ASCII, in a text of the right length in bytes", good[:-3] + "１")
    add("hexadecimal", "the key in hexadecimal", PREFIX + CI_KEY.hex())
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n"

"""identities.json: valid and invalid texts of identities, as age writes them."""

import json

from nacl import bindings

import vault_format as f
import vault_identities as identities
from vector_bases import IDENTITY, RECIPIENT

# An identity and its recipient that this code did not make.
KNOWN = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
KNOWN_RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

# A hybrid identity and its recipient as age-keygen 1.3 made them.
HYBRID = "AGE-SECRET-KEY-PQ-1AA9JJAT3PG75ZV3X06ZN55K8HV7FTUKMHDQCX9UVT0CGDQ7FJUNSAU78PS"
HYBRID_RECIPIENT = (
    "age1pq13ty5cuaye8ahx9xa26s3qjgg672p4rrfwcdc42d0tvftxk79fef9xn7qcxdlz59x394klp3dfx94dy35jt5vgyrsu3esx"
    "dm44vm88239jthegqwl2y8282sl7u92pggzdw6cwcqfgerx97fw9g45gu2f0kxqrt3n5e8c83m6gmx9ap6rg7txt22xmjm2m5q3l"
    "tymzmue35grve7lf9fjupna4l96mt5rc9dad36l26xdn09xmm3p7mahxzpps0sdvqsz3vr8vfq9h5098ckkeyjz09nwugxveuumh"
    "q8m4dec56u2xjdy96an8ynnur88h5a0c2f9styl6kf4g9pqwkwx0jxdg2a459af67c2gr78uzymeds70rpzu4ahc24m3n3pm8qs2"
    "qq5pfck5fs304rc66fjatjnhjclzlu82432pnzh3qgrjkmyjrsu56kmanrq2qepr0j4533vekytnwkgqak4q43nfwgx4p29df3qr"
    "sg5u3sfsky0vptkkr5qth9mxdj8g7rl0znfk3jvgeqxewg5vn2a9gtmn89lvqay04zprs3kwtgr2khuzdj9q8mghnppfkzavqg06"
    "txazfqjhpgegdt3j5et5857vegvuujm9ckzy58yqyae4rtgrwnv07sm58n5e5frzcadhgpcjdvgheduhy945pteel46e9j8w5uag"
    "q6lfxft95chzup6hytsujd02wylcvj5j6r3rpvqpx68t2vkppad6gu3p9anpq7s2ya2qfm4qpgxr3erlr5jjyjqsfypu94np4f9z"
    "we469gz2y2k98fsyxsfdmzxun2tuxegp4rxkl0panzhqa3sdxpuwwscepyk4nf4mj009pevg2atrv3ffz6l3q80jf4l8mzj92z4l"
    "zf3sffa99x739579gx0caj3pnj2hxzdn3jv924yc4jj6uw2clrn93xgdygvm3439spqavvx69vmzl5ajj0rcufr9j7gkq9tzp26q"
    "3dew3t6hsp4dx6c0um655nevmc9c6pjcs6ce54rk9s29g4f85u8y5slm37dk6sktunqk60v487ny76s5znqkjr65zfyw29r3jd89"
    "yg47zclw0z7j4f8k4en8k4r0wj53seghsyu2jas9ns9tvlnnraewaeqmg5y8g9rv4xgvp00vaclt3qanxqaa4gn5d4mj3sjeppsm"
    "se6j2vunh5rzr7s8xgq0pw55g0xnfutpg3g5rgtndlfhz3aag45d6jerqtytkh3x0t4dtnej2queg609k665ltrjfure3jfwzl8u"
    "cpdgdcxrqrj2uatvk47d8806euwvc4hrpyzcvuprx3wdr8ny57x00njhkjjkuuzptsyy5hdn4vvgeecd29ce3eevwdnyjj3lpakf"
    "8e49vlmddvg0gm2yccu54yll5vur5j547q40ytk7tpvy95w2lf5mxsmc89kvj02q7m2tjny65agmg8995gsyvh54q9usf6nl2yy6"
    "q2u55jmnnhpmj66yvaxaadrww3jw7q2jz5hzgswrvzg7tytxdhzr5m8kl3eeqdykwrh6wuhff548vv7yjy9k7gm5jq69wn8mtqm0"
    "nrxhfv0jqce5jpyhwm969c2dgmx2h7rq2jj675y0e5sgejs8dvtg3vv89gpfatz7ycxnwnfgcx5wwuuu9jum252ts72z70hfanrw"
    "mhmkrp6fp99nlvy80m5snsg8qkfzc5av9tzntgyd6k4nuv3nqf5cxsq67sr7xezg5h5ceuhw9lt93k0k0z97d2rta3vfmmcc20px"
    "5m6m6zeuhnea73m0nef5gxw9pc45y90zgepngj6etswsnmzzy05e34rhw0nyh7z54whpg4tkn4qxaklas7y56s0p772nur2st2mg"
    "y3mr532q29a5ytnyc475url8x7l44qaru7g5ng9ygppvgamzwpky52lsqpg"
)
HYBRID_KNOWN = identities.parse_identity(HYBRID), HYBRID_RECIPIENT


def text():
    good = identities.encode(identities.IDENTITY, IDENTITY)
    prefix = identities.IDENTITY + "1"
    body = good[len(prefix) :]
    entries = []

    def add(name, comment, text, identity=None, recipient=None):
        expect = {"outcome": f.INVALID_KEY}
        if identity:
            if not recipient:
                recipient = identities.encode(identities.RECIPIENT, bindings.crypto_scalarmult_base(identity))
            expect = {"outcome": f.OK, "identity": identity.hex(), "recipient": recipient}
        entries.append({"name": name, "comment": comment, "text": text, "expect": expect})

    def replaced(index):
        return good[:index] + ("Q" if good[index] != "Q" else "P") + good[index + 1 :]

    add("valid", "an identity", good, IDENTITY)
    add("known", "32 bytes of 42 (hexadecimal), and its recipient as written down elsewhere", KNOWN, b"\x42" * 32, KNOWN_RECIPIENT)
    looks_hybrid = (2320).to_bytes(32, "big")
    add("looks-hybrid", "a recipient that begins with age1pq and is of X25519", identities.encode(identities.IDENTITY, looks_hybrid), looks_hybrid)
    add("lower-case", "an identity in lower case", good.lower())
    add("ones", "an identity of ones", identities.encode(identities.IDENTITY, b"\xff" * 32), b"\xff" * 32)
    add("zeros", "an identity of zeros", identities.encode(identities.IDENTITY, bytes(32)), bytes(32))
    add(
        "mixed-case",
        "one letter in the other case",
        good[:-1] + good[-1].lower() if good[-1].isalpha() else good[:-2] + good[-2].lower() + good[-1],
    )
    add("prefix-lower-case", "the prefix alone in lower case", prefix.lower() + body)
    add("recipient", "a recipient", identities.encode(identities.RECIPIENT, RECIPIENT))
    add("hybrid", "a hybrid identity, and its recipient as age makes it", HYBRID, *HYBRID_KNOWN)
    add("hybrid-prefix", "a hybrid identity with the checksum of another prefix", identities.HYBRID_IDENTITY + "1" + body)
    add("hybrid-short", "a hybrid identity of 31 bytes", identities.encode(identities.HYBRID_IDENTITY, IDENTITY[:31]))
    add("other-prefix", "another prefix", identities.encode("AGE-PLUGIN-KEY-", IDENTITY))
    add("no-prefix", "the identity without its prefix", body)
    add("no-separator", "the identity without its separator", good.replace("KEY-1", "KEY-", 1))
    add("prefix-alone", "the prefix alone", prefix)
    add("empty", "an empty text", "")
    for index, region in ((len(prefix), "first"), (len(prefix) + 25, "middle"), (len(prefix) + 51, "last")):
        add(f"typo-{region}", f"a typo in the {region} character of the identity", replaced(index))
    for index, region in ((-6, "first"), (-1, "last")):
        add(f"typo-checksum-{region}", f"a typo in the {region} character of the checksum", replaced(len(good) + index))
    at = next(n for n in range(len(prefix), len(good) - 1) if good[n] != good[n + 1])
    add("swapped", "two characters swapped", good[:at] + good[at + 1] + good[at] + good[at + 2 :])
    add("short", "the last character is missing", good[:-1])
    add("long", "one character too many", good + "Q")
    add("31-bytes", "31 bytes, with a checksum", identities.encode(identities.IDENTITY, IDENTITY[:31]))
    add("33-bytes", "33 bytes, with a checksum", identities.encode(identities.IDENTITY, IDENTITY + b"\0"))
    add("no-bytes", "no bytes, with a checksum", identities.encode(identities.IDENTITY, b""))
    add(
        "spare-bits",
        "spare bits that are not zero, with a checksum",
        with_values(IDENTITY, lambda values: [*values[:-1], values[-1] | 1]),
    )
    add(
        "character-more",
        "a character of zero more, with a checksum",
        with_values(IDENTITY, lambda values: [*values, 0]),
    )
    add("bech32m", "a checksum of Bech32m", with_values(IDENTITY, list, 0x2BC830A3))
    for name, character in {"1": "1", "b": "B", "i": "I", "o": "O"}.items():
        add(f"character-{name}", f"the character {character}, which Bech32 has not", good[:-10] + character + good[-9:])
    add("kelvin-sign", "a Kelvin sign in place of a K of the prefix", good.replace("KEY", "\u212aEY"))
    add("fullwidth", "a letter that is not ASCII", good[:-1] + "\uff31")
    add("space-before", "a space before the identity", " " + good)
    add("space-after", "a space after the identity", good + " ")
    add("one-lf", "an LF after the identity", good + "\n", IDENTITY)
    add("nul-after", "a NUL after the identity", good + "\0")
    add("twice", "the identity twice", good + good)
    add("key", "a key", f.key_text(IDENTITY).decode())
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n"


def with_values(data, change, constant=1):
    """The text of changed values of five bits, with a right checksum."""
    prefix = identities.IDENTITY
    body = identities.encode(prefix, data)[len(prefix) + 1 : -6].lower()
    values = change([identities.ALPHABET.index(one) for one in body])
    check = identities.polymod(identities.expanded(prefix) + values + [0] * 6) ^ constant
    values += [check >> 5 * (5 - at) & 31 for at in range(6)]
    return identities.written(prefix, values)

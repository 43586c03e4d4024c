"""The end of the file: truncations, crashes, and bytes after the end."""

import vault_format as f
from vector_bases import put
from vector_suite import TAMPERED, constant


def add(suite):
    pages = {"commit-slot-0": 4096, "commit-slot-1": 8192, "leases": 12_288, "base": 16_384}
    places = pages | {"root": suite.end("small", "root")}
    for part in ("block 0 value 0", "block 0", "block 1 value 1", "block 1", "frame 0", "frame 1"):
        places[part.replace(" ", "-")] = suite.end("small", part)
    for name, size in places.items():
        suite.truncated(
            f"truncated-before-end-of-{name}" if name not in pages else f"truncated-before-{name}",
            f"cut to {size - 1} bytes",
            "small",
            TAMPERED,
            size - 1,
        )
        suite.truncated(
            f"truncated-after-{name}" if name not in pages else f"truncated-at-{name}",
            f"cut to {size} bytes",
            "small",
            TAMPERED,
            size,
        )
    end = suite.end("small", "frame 3")
    older = suite.end("small", "frame 2")
    for size, comment in (
        (end - 1, "the last byte is missing"),
        (end - 16, "the last tag is missing"),
        (older + 28, "the last frame is cut after its first nonce"),
        (older, "the last frame is missing and its commit slot is valid, which no crash causes"),
        (older - 1, "the last frame and a byte are missing"),
    ):
        suite.truncated(f"truncated-{size}-of-{end}", comment, "small", TAMPERED, size)
    slot = suite.place("uncopied", "commit slot 1")
    damaged = (slot, 1, b"\x5a")
    suite.damage(
        "crash-before-slot",
        "the last commit's frame is written and its slot is torn",
        "uncopied",
        f.RECOVERED,
        damaged,
        transactions=2,
    )
    suite.damage(
        "crash-before-frame",
        "the last commit's slot is torn and its frame is missing",
        "uncopied",
        f.RECOVERED,
        damaged,
        (older, end - older, b""),
        transactions=2,
    )
    suite.damage(
        "crash-frame-zeros",
        "the last commit's slot is torn and its frame is zeros",
        "uncopied",
        f.RECOVERED,
        damaged,
        (older, end - older, bytes(end - older)),
        transactions=2,
    )
    suite.damage(
        "crash-and-damage-below",
        "the last commit's slot is torn and the frame before it is truncated",
        "uncopied",
        TAMPERED,
        damaged,
        (older - 1, end - older + 1, b""),
    )
    frame = suite.made["small"].file[older:end]
    for name, comment, data in (
        ("byte", "a byte follows the end", b"\0"),
        ("page", "a page of zeros follows the end", bytes(4096)),
        ("junk", "junk follows the end", b"\xff" * 100),
        ("frame", "a copy of the last frame after the end", frame),
        ("half-frame", "half a frame after the end", frame[:50]),
    ):
        suite.damage(f"ok-{name}-after-end", comment, "small", f.OK, (end, 0, data))
    suite.damage(
        "ok-created-and-junk",
        "junk after the end of a vault without frames",
        "created",
        f.OK,
        (suite.end("created", "root"), 0, frame),
    )
    suite.resealed(
        "ok-commit-not-acknowledged",
        "a whole frame after the end that both slots state",
        "created",
        f.OK,
        {f"commit slot {n} state": constant(suite.made["created"].states[0].encode()) for n in (0, 1)},
        change=lambda d: d.update(tail=[[put("one", "1")]]),
        transactions=0,
    )

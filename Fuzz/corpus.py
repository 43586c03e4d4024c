#!/usr/bin/env python3
"""Converts between a corpus file of the repository and a directory that libFuzzer reads.

usage: corpus.py unpack FILE DIRECTORY     writes each input of FILE as a file in DIRECTORY
       corpus.py pack DIRECTORY FILE       writes the files in DIRECTORY as the lines of FILE

A corpus file has one input a line, in base64. `pack` drops duplicates and sorts by length, then by content, so that
the same inputs always make the same file. An empty line is the empty input.
"""

import base64
import hashlib
import sys
from pathlib import Path


def unpack(file, directory):
    directory.mkdir(parents=True, exist_ok=True)
    for line in file.read_text("ascii").splitlines():
        data = base64.b64decode(line, validate=True)
        (directory / hashlib.blake2b(data, digest_size=10).hexdigest()).write_bytes(data)


def pack(directory, file):
    inputs = {path.read_bytes() for path in directory.iterdir()}
    lines = [base64.b64encode(data).decode() + "\n" for data in sorted(inputs, key=lambda data: (len(data), data))]
    file.write_text("".join(lines), "ascii")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        print(__doc__, file=sys.stderr)
        return 64
    convert = pack if sys.argv[1] == "pack" else unpack
    convert(Path(sys.argv[2]), Path(sys.argv[3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

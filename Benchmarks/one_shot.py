#!/usr/bin/python3
"""What one process costs that gets one secret: its instructions, and how many of them the tail of the vault adds.

usage: one_shot.py SECRET [SECRETSxVERSIONS]...

SECRET is the static tool. Makes vaults with so many secrets and versions of each, by default 10x1 100x10 1000x10 10000x10, with
the second implementation of the format. Each is read as a rewrite leaves it, and with the longest tail that a writer makes.
Counts with valgrind's callgrind, without memset, memcpy and memmove: the counts do not depend on the machine's load.

Exit status: 0 measured, 1 a command failed, 64 wrong usage.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Tests" / "Vectors"))

import vault_described as d  # noqa: E402
import vault_format as f  # noqa: E402

COPIES = re.compile(r"mem(set|cpy|move)|bzero")
KEY = bytes(range(32))


def change(index, version):
    return {"service": "secret", "account": f"name-{index}", "value_text": f"value {version}", "created": 0, "modified": version}


def vault(secrets, versions, frames):
    items = [change(index, version) for version in range(versions) for index in range(secrets)]
    tail = [{"put": change(number % secrets, versions + number // secrets)} for number in range(frames)]
    description = {
        "seed": "one-shot", "slots": [{"type": "key", "key": KEY.hex()}], "history": {"versions": versions, "days": 0},
        "base": {"items": items}, "tail": [tail] if tail else [],
    }
    return d.NewFile(description)


def counted(program, directory, data):
    """The instructions of one `get`, and those in copies of memory."""
    path, key = directory / "v", directory / "key"
    path.write_bytes(data)
    key.write_bytes(f.key_text(KEY))
    environment = {"HOME": str(directory), "COFFER_KEY_FILE": str(key), "COFFER_VAULT": str(path), "PATH": os.environ["PATH"]}
    command, out = [program, "get", "name-0"], directory / "out"
    subprocess.run(command, env=environment, check=True, capture_output=True)  # records the vault
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    subprocess.run(valgrind + command, env=environment, check=True, capture_output=True)
    listing = subprocess.run(
        ["callgrind_annotate", "--threshold=100", str(out)], check=True, capture_output=True, text=True
    ).stdout
    total = copies = 0
    for line in listing.splitlines():
        found = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+(.*)", line)
        if not found:
            continue
        count = int(found[1].replace(",", ""))
        if "PROGRAM TOTALS" in line:
            total = count
        elif COPIES.search(found[2]):
            copies += count
    return total - copies


def main():
    if sys.argv[1:] == ["--help"]:
        sys.exit(print(__doc__))
    sizes = [tuple(map(int, one.split("x"))) for one in sys.argv[2:] if re.fullmatch(r"\d+x\d+", one)]
    if len(sys.argv) < 2 or not os.path.isfile(sys.argv[1]) or len(sizes) != len(sys.argv[2:]):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    os.umask(0o077)
    stripped = tempfile.NamedTemporaryFile(delete=False)
    # valgrind cannot read the descriptions for debuggers that the linker writes.
    subprocess.run(["objcopy", "--strip-debug", sys.argv[1], stripped.name], check=True)
    os.chmod(stripped.name, 0o700)
    stripped.close()
    print("secrets versions frames | millions of instructions: best, worst, added | of a frame")
    for secrets, versions in sizes or [(10, 1), (100, 10), (1000, 10), (10000, 10)]:
        base = vault(secrets, versions, 0)
        target = max(32_768, min(base.states[0].base_end // 128, 1_048_576))
        frame = vault(secrets, versions, 1)
        length = len(frame.file) - len(base.file) - (40 + 32)  # without the sealed value, which has one unit
        frames = target // length
        with tempfile.TemporaryDirectory() as name:
            best = counted(stripped.name, Path(name), base.file)
        with tempfile.TemporaryDirectory() as name:
            worst = counted(stripped.name, Path(name), vault(secrets, versions, frames).file)
        added = worst - best
        print(
            f"{secrets:7} {versions:8} {frames:6} | {best / 1e6:.2f} {worst / 1e6:.2f} {added / 1e6:.2f} | {added // frames}",
            flush=True,
        )
    os.unlink(stripped.name)


main()

#!/usr/bin/python3
"""Attacks on the vault of the tool `secret`, made with the second implementation of the format.

usage: attack.py SECRET [NAME]...

SECRET is the built tool. The attacker has what VaultFormat.md's threat model gives: write access to the file or its
directory, an older copy, a removed key or an older master key. The files that the attacker makes come from
Tests/Vectors, never from the library. Each attack is tried on a machine that has seen the vault, and the tool must
refuse it, print no value of it and encrypt nothing to it; a machine that never saw the vault must take it, so that an
attack that is wrong in itself is noticed. NAME runs one attack:

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import os
import sys
import tempfile
import time

import other_files
import revoked_keys
import trust_and_keys
from scene import Checks, Scene, SettingFailed

ATTACKS = {attack.__name__: attack for part in (revoked_keys, other_files, trust_and_keys) for attack in part.ATTACKS}


def usage():
    names = "\n".join(f"  {name}: {attack.__doc__}" for name, attack in ATTACKS.items())
    return __doc__.replace("NAME runs one attack:\n", f"NAME runs one attack:\n\n{names}\n")


def main():
    if sys.argv[1:] == ["--help"]:
        print(usage())
        sys.exit(0)
    if len(sys.argv) < 2 or not os.path.isfile(sys.argv[1]) or not set(sys.argv[2:]) <= set(ATTACKS):
        print(usage(), file=sys.stderr)
        sys.exit(64)
    tool = os.path.abspath(sys.argv[1])
    checks, started = Checks(), time.monotonic()
    os.umask(0o077)
    for name in sys.argv[2:] or ATTACKS:
        checks.attack = name
        # The path of a record is resolved, so the directory must not be named by a link.
        with tempfile.TemporaryDirectory(dir=os.path.realpath(tempfile.gettempdir())) as directory:
            try:
                ATTACKS[name](Scene(tool, directory, checks))
            except SettingFailed as failure:
                checks.check("the rest of the attack can be tried", False, failure)
    print(f"{checks.count} checks in {time.monotonic() - started:.0f} s, {len(checks.failures)} failed")
    for failure in checks.failures:
        print(f"FAILED: {failure}")
    sys.exit(1 if checks.failures else 0)


main()

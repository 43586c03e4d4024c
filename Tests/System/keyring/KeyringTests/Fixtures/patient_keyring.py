"""Python's keyring and secretstorage, with a minute instead of one second for the bus to accept a connection.

usage: patient_keyring.py ARGUMENT...

Runs `keyring ARGUMENT...`. A program that imports this module first has the minute too. While many tests run at once,
dbus-daemon may need longer than a second.
"""

import functools
import runpy

import secretstorage

secretstorage.open_dbus_connection = functools.partial(secretstorage.open_dbus_connection, auth_timeout=60)

if __name__ == "__main__":
    runpy.run_module("keyring", run_name="__main__", alter_sys=True)

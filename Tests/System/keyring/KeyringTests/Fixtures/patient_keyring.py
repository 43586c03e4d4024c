"""Python's keyring and secretstorage, with ten connections of six seconds each in place of one of one second.

usage: patient_keyring.py ARGUMENT...

Runs `keyring ARGUMENT...`. A program that imports this module first is as patient. While many tests run at once,
dbus-daemon sometimes accepts a connection and does not answer on it for half a minute, then closes it.
"""

import runpy

import secretstorage

open_connection = secretstorage.open_dbus_connection


def open_patiently():
    for attempt in range(10):
        try:
            return open_connection(auth_timeout=6)
        except (TimeoutError, ConnectionError) as error:
            last = error
    raise last


secretstorage.open_dbus_connection = open_patiently

if __name__ == "__main__":
    runpy.run_module("keyring", run_name="__main__", alter_sys=True)

"""A message bus that lets programs connect, and answers no call but the first one, `Hello`; or not even that one.

Usage: stalling_bus.py SOCKET [silent]
"""

import socket
import struct
import sys
import threading

BODY = struct.pack("<I", 4) + b":1.1\0"


def field(code, signature, value):
    return bytes([code, 1]) + signature + b"\0" + value


def answer_to_hello(serial):
    fields = b""
    for one in (
        field(5, b"u", struct.pack("<I", serial)), field(6, b"s", BODY), field(7, b"s", struct.pack("<I", 20) + b"org.freedesktop.DBus\0"),
        field(8, b"g", b"\1s\0"),
    ):  # fmt: skip
        fields += b"\0" * (-len(fields) % 8) + one
    header = struct.pack("<cBBBIII", b"l", 2, 1, 1, len(BODY), 1, len(fields)) + fields
    return header + b"\0" * (-len(header) % 8) + BODY


def serve(client):
    received = b""
    while b"BEGIN\r\n" not in received:
        more = client.recv(4096)
        if not more:
            return
        received += more
        if more.endswith(b"\r\n") and not more.endswith(b"BEGIN\r\n"):
            line = more.strip(b"\0\r\n")
            if line == b"AUTH":
                client.send(b"REJECTED EXTERNAL\r\n")
            elif line == b"AUTH EXTERNAL":
                client.send(b"DATA\r\n")
            elif line.startswith((b"AUTH", b"DATA")):
                client.send(b"OK 0123456789abcdef0123456789abcdef\r\n")
            else:
                client.send(b"ERROR\r\n")
    received = received.split(b"BEGIN\r\n", 1)[1]
    while len(received) < 16:
        received += client.recv(4096)
    if len(sys.argv) < 3:
        client.send(answer_to_hello(struct.unpack("<I", received[8:12])[0]))
    while client.recv(4096):
        pass


listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(16)
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()

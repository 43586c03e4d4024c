"""A web server on the loopback interface that requires a username and a password.

Serves the files in a directory, as `python3 -m http.server` does, and counts the requests.
"""

import base64
import functools
import http.server
import threading


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments, server_state, **more):
        self.state = server_state
        super().__init__(*arguments, **more)

    def do_GET(self):
        given = self.headers.get("Authorization")
        if given is None:
            self.state.anonymous += 1
        elif given == self.state.accepted:
            self.state.admitted += 1
            return super().do_GET()
        else:
            self.state.refused += 1
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="test"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


class ProtectedServer:
    """`with ProtectedServer(directory, "ann", "hunter2") as server:` serves until the block ends."""

    def __init__(self, directory, user, password):
        self.anonymous = self.admitted = self.refused = 0
        self.require(user, password)
        handler = functools.partial(Handler, server_state=self, directory=str(directory))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"

    def require(self, user, password):
        self.accepted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

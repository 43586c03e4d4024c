#!/usr/bin/env python3
"""Many processes on four machines count in one vault on an engine, while a part of the system fails.

usage: many_machines.py SECRET ENGINE [--processes N] [--changes N] [--size BYTES] [--fault FAULT]...

SECRET is the built tool; CofferProbe and the engine's helper must be beside it. ENGINE is postgresql, ceph or ceph-next. Each of
N processes (default: 8) makes N changes (default: 10) in a vault that is at least BYTES large; a change raises a common count and
adds a line to a secret of the process. A machine is a home directory of its own. FAULT is one of the engine's faults, or `all`
(default: none):

  none       nothing fails
  clients    processes are killed
  helpers    helpers are killed
  engine     the engine is killed and started again
  gateway    Ceph's gateway is killed and started again
  osd        Ceph's store below it is killed and started again
  failover   the primary is killed and a synchronous standby takes its place
  network    requests through a proxy are delayed, repeated, cut, late, and lost, and so are answers

Then every change that was reported as done must be there, each change once, with a count that no other change has, and
nothing else: the history that the processes saw was one.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import argparse
import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import servers

# In seconds, for all processes of one run.
TIMEOUT = 900
MACHINES = 4


class Proxy:
    """Forwards connections to a port. While it is `bad`, some are delayed, cut in the middle of a message, or silent."""

    def __init__(self, target):
        self.target = target
        self.bad = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.forward, args=(one, other), daemon=True).start()

    def forward(self, source, sink):
        try:
            source.settimeout(None)
            while data := source.recv(65536):
                if self.bad:
                    kind = random.random()
                    if kind < 0.05:
                        sink.sendall(data[: random.randrange(len(data) + 1)])
                        break
                    if kind < 0.08:
                        time.sleep(random.uniform(2, 12))
                        break
                    if kind < 0.3:
                        time.sleep(random.uniform(0, 0.3))
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class HTTPProxy(Proxy):
    """A proxy that knows where a request begins, and so can repeat one, or send it later than its successors."""

    def serve(self, client):
        with client:
            reader = client.makefile("rb")
            while request := self.message(reader):
                kind = random.random() if self.bad else 1
                if kind < 0.05:
                    return  # never sent
                if kind < 0.1:
                    # Sent much later, while the client asks again.
                    threading.Timer(random.uniform(0.2, 4), self.exchange, (request,)).start()
                    return
                if kind < 0.2:
                    self.exchange(request)  # sent twice, and the second answer counts
                if kind < 0.3:
                    time.sleep(random.uniform(0, 0.5))
                answer = self.exchange(request)
                if answer is None or 0.3 < kind < 0.36:
                    return  # done, and nobody hears of it
                client.sendall(answer if kind > 0.39 else answer[: random.randrange(len(answer))])
                if kind <= 0.39 and kind >= 0.36:
                    return

    @staticmethod
    def message(reader):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline()
            if not line:
                return None
            head += line
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        return head + (reader.read(int(length.group(1))) if length else b"")

    def exchange(self, request):
        try:
            with socket.create_connection(("127.0.0.1", self.target), timeout=30) as server:
                server.sendall(request)
                answer = http.client.HTTPResponse(server, method=request.split(b" ")[0].decode())
                answer.begin()
                body = answer.read()
                lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
                lines += [f"{name}: {value}" for name, value in answer.getheaders()
                          if name.lower() not in ("content-length", "transfer-encoding", "connection")]
                if answer.status != 304:
                    lines.append(f"content-length: {len(body)}")
                return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
        except (OSError, http.client.HTTPException):
            return None

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve_quietly, args=(client,), daemon=True).start()

    def serve_quietly(self, client):
        try:
            self.serve(client)
        except OSError:
            pass


class Engine:
    """An engine, the URL of a vault there, and a proxy between them if the network is to fail."""

    Proxy = Proxy
    proxy = None

    def __init__(self, server, fault):
        self.server = server
        self.environment = server.environment
        self.url = server.url("counted")
        if fault == "network":
            self.proxy = self.Proxy(server.port)
            self.url = self.url.replace(str(server.port), str(self.proxy.port))

    def fail(self, fault):
        """Lets one thing go wrong. Returns whether there is more of it."""
        self.proxy.bad = not self.proxy.bad
        time.sleep(random.uniform(1, 3))
        return True

    def heal(self):
        if self.proxy:
            self.proxy.bad = False

    def stop(self):
        self.server.stop()


class PostgreSQLEngine(Engine):
    faults = ("none", "clients", "helpers", "engine", "failover", "network")

    def __init__(self, directory, fault):
        super().__init__(servers.PostgreSQL(f"{directory}/primary"), fault)
        if fault == "failover":
            self.standby = servers.PostgreSQL(f"{directory}/standby", primary=self.server)
            self.server.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'standby{self.standby.port}'",
                            "SELECT pg_reload_conf()")
            # A standby inherits the setting, and no commit on it would end.
            with open(f"{self.standby.directory}/data/postgresql.auto.conf", "a") as file:
                file.write("synchronous_standby_names = ''\n")
            self.standby.sql("SELECT pg_reload_conf()")
            while "sync" not in self.server.sql("SELECT sync_state FROM pg_stat_replication"):
                time.sleep(0.1)
            self.url = self.server.url("counted", self.standby)

    def fail(self, fault):
        if fault == "engine":
            self.server.kill()
            time.sleep(random.uniform(0.1, 1))
            self.server.start()
            time.sleep(random.uniform(0.5, 2))
            return True
        if fault == "failover":
            self.server.kill()
            self.standby.promote()
            return False
        return super().fail(fault)

    def stop(self):
        for server in (self.server, getattr(self, "standby", None)):
            if server:
                try:
                    server.stop()
                except Exception:
                    pass


class CephEngine(Engine):
    faults = ("none", "clients", "helpers", "gateway", "osd", "network")
    Proxy = HTTPProxy
    Server = servers.Ceph

    def __init__(self, directory, fault):
        super().__init__(self.Server(f"{directory}/store"), fault)
        self.kills = 0

    def fail(self, fault):
        if fault in ("gateway", "osd"):
            name = {"gateway": "rgw", "osd": "osd"}[fault]
            self.server.kill(name)
            time.sleep(random.uniform(0.1, 2))
            self.server.start(name)
            # It answers again after some seconds.
            time.sleep(random.uniform(5, 10))
            self.kills += 1
            return self.kills < 5
        return super().fail(fault)


class NextCephEngine(CephEngine):
    Server = servers.NextCeph


ENGINES = {"postgresql": PostgreSQLEngine, "ceph": CephEngine, "ceph-next": NextCephEngine}


class Run:
    def __init__(self, tool, engine, directory):
        self.tool = tool
        self.probe = os.path.join(os.path.dirname(tool), "CofferProbe")
        self.engine = engine
        self.directory = directory
        self.pin = None
        self.told = []
        self.failures = []
        self.lock = threading.Lock()
        self.running = {}
        self.is_over = threading.Event()
        self.secret("init", "--key-file", f"{directory}/key")
        self.pin = re.search(r"identity pin: (\S+)", self.secret("verify")).group(1)

    def environment(self, machine):
        home = f"{self.directory}/machine{machine}"
        os.makedirs(home, exist_ok=True)
        variables = {"PATH": os.environ["PATH"], "HOME": home, "COFFER_KEY_FILE": f"{self.directory}/key"}
        return {**variables, **({"COFFER_PIN": self.pin} if self.pin else {}), **self.engine.environment}

    def secret(self, *arguments, machine=0, statuses=(0,), given=""):
        result = subprocess.run(
            [self.tool, "--vault", self.engine.url, *arguments] if arguments[0] != "init" else
            [self.tool, *arguments, "--vault", self.engine.url],
            env=self.environment(machine), input=given, capture_output=True, text=True, timeout=TIMEOUT)
        if result.returncode not in statuses:
            raise Exception(f"secret {arguments} ended with {result.returncode}: {result.stderr}")
        return result.stdout

    def work(self, name, changes, machine):
        first = 1
        while first <= changes:
            process = subprocess.Popen(
                [self.probe, "count", self.engine.url, name, str(first), str(changes)], env=self.environment(machine),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with self.lock:
                self.running[name] = process
            for line in process.stdout:
                words = line.split()
                with self.lock:
                    self.told.append((name, *words))
                first = int(words[1]) + 1
            errors = process.stderr.read()
            process.wait()
            with self.lock:
                del self.running[name]
            if process.returncode not in (0, -signal.SIGKILL):
                self.failures.append(f"{name} ended with {process.returncode}: {errors}")
                return

    def disturb(self, fault):
        while not self.is_over.is_set():
            time.sleep(random.uniform(0.2, 1))
            if fault == "clients":
                with self.lock:
                    for process in random.sample(sorted(self.running.values(), key=id), len(self.running) // 4):
                        process.kill()
            elif fault == "helpers":
                for line in subprocess.run(["pgrep", "-f", "coffer-remote-.*counted"], capture_output=True, text=True).stdout.split():
                    if random.random() < 0.25:
                        try:
                            os.kill(int(line), signal.SIGKILL)
                        except ProcessLookupError:
                            pass
            elif fault == "none" or not self.engine.fail(fault):
                return
        self.engine.heal()

    def run(self, processes, changes, fault):
        start = time.monotonic()
        workers = [
            threading.Thread(target=self.work, args=(f"p{number}", changes, number % MACHINES)) for number in range(processes)
        ]
        disturber = threading.Thread(target=self.disturb, args=(fault,))
        for thread in [*workers, disturber]:
            thread.start()
        for thread in workers:
            thread.join(TIMEOUT)
        self.is_over.set()
        disturber.join(TIMEOUT)
        return time.monotonic() - start

    def judge(self, processes):
        """Compares what the vault has with what each process was told."""
        done, unknown, began, failed, times = {}, set(), set(), {}, []
        for name, verdict, number, *rest in self.told:
            change = (name, int(number))
            if verdict == "begin":
                began.add(change)
            elif verdict == "done":
                done[change] = int(rest[0])
                times.append(int(rest[1]) / 1000)
            elif verdict == "failed":
                failed[change] = rest[0]
        unknown = began - done.keys() - failed.keys()
        found = {}
        for number in range(processes):
            for word in self.secret("-s", "count", "get", f"p{number}", machine=number % MACHINES, statuses=(0, 1)).split():
                change = (f"p{number}", int(word.split(":")[0]))
                if change in found:
                    self.failures.append(f"{change} was made twice")
                found[change] = int(word.split(":")[1])
        total = int(self.secret("-s", "count", "get", "all", statuses=(0, 1)) or 0)
        for change, count in done.items():
            if found.get(change) != count:
                self.failures.append(f"{change} was acknowledged with the count {count}, and has {found.get(change)}")
        for change, code in failed.items():
            if change in found:
                self.failures.append(f"{change} failed with {code}, and is there")
        if extra := found.keys() - began:
            self.failures.append(f"nobody made {extra}")
        if sorted(found.values()) != list(range(1, total + 1)):
            self.failures.append(f"the counts are not 1 to {total}: {sorted(found.values())}")
        self.secret("verify")
        times.sort()
        part = lambda share: times[min(len(times) - 1, int(share * len(times)))] if times else 0
        return f"p50 {part(0.5):.0f} ms, p99 {part(0.99):.0f} ms, {len(done)} done, {len(unknown)} unknown of which {len(unknown & found.keys())} were made, {len(failed)} failed " \
            f"({', '.join(sorted(set(failed.values()))) or 'none'})"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("secret")
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--fault", action="append")
    options = parser.parse_args()
    faults = ENGINES[options.engine].faults
    is_wrong = False
    for fault in faults if options.fault == ["all"] else options.fault or ["none"]:
        if fault not in faults:
            parser.error(f"{options.engine} has no fault {fault}")
        with tempfile.TemporaryDirectory(prefix="coffer-machines-") as directory:
            os.chmod(directory, 0o755)
            engine = ENGINES[options.engine](directory, fault)
            try:
                run = Run(os.path.abspath(options.secret), engine, directory)
                if options.size:
                    run.secret("-s", "size", "set", "--from-file", "/dev/stdin", "filling", given="x" * options.size)
                seconds = run.run(options.processes, options.changes, fault)
                report = run.judge(options.processes)
            finally:
                engine.stop()
            print(f"{options.engine}, {fault}: {report}; {seconds:.1f} s", flush=True)
            for failure in run.failures[:10]:
                print(f"FAILED: {failure}", flush=True)
            is_wrong = is_wrong or bool(run.failures)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

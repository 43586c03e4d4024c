"""Engines that the tests start, each in a directory of its own and as an unprivileged user."""

import glob
import hashlib
import hmac
import http.client
import http.server
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid

# In seconds, for a server to start or to stop.
TIMEOUT = 60


class Missing(Exception):
    """A program that a test needs is not installed."""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def children(process):
    """The process and all that it started, by its id."""
    found = [process]
    for line in subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split("\n"):
        numbers = [int(number) for number in line.split()]
        if len(numbers) == 2 and numbers[1] in found:
            found.append(numbers[0])
    return found


class PostgreSQL:
    """A PostgreSQL server on the loopback interface, with password authentication."""

    PASSWORD = "a-password-of-the-tests"

    def __init__(self, directory, settings=(), primary=None):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not found:
            raise Missing("There is no initdb. Install the package postgresql.")
        self.programs = os.path.dirname(found[-1])
        self.directory = directory
        self.port = free_port()
        os.mkdir(directory, 0o700)
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
        password = f"{directory}/password"
        with open(password, "w") as file:
            file.write(self.PASSWORD)
        os.chmod(password, 0o644)
        if primary is None:
            self.run("initdb", "-D", f"{directory}/data", "-U", "postgres", "-E", "UTF8", "--no-sync", "-A", "scram-sha-256",
                     f"--pwfile={password}")
        else:
            self.run("pg_basebackup", "-D", f"{directory}/data", "-R", "-X", "stream", "-c", "fast", "-d",
                     primary.conninfo + f" application_name=standby{self.port}")
        with open(f"{directory}/settings", "w") as file:
            lines = [f"port = {self.port}", "listen_addresses = '127.0.0.1'", f"unix_socket_directories = '{directory}'",
                     "max_connections = 200", "shared_buffers = '64MB'", "log_min_messages = warning", *settings]
            if primary is not None:
                lines.append(f"primary_conninfo = '{primary.conninfo} application_name=standby{self.port}'")
                lines.append("wal_receiver_timeout = '2s'")
            file.write("\n".join(lines) + "\n")
        os.chmod(f"{directory}/settings", 0o644)
        with open(f"{directory}/data/postgresql.conf", "a") as file:
            file.write(f"include '{directory}/settings'\n")
        if primary is None:
            with open(f"{directory}/data/pg_hba.conf", "a") as file:
                file.write("host replication all 127.0.0.1/32 scram-sha-256\n")
        self.start()

    def as_user(self, command):
        if os.geteuid() != 0:
            return command
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]

    def run(self, program, *arguments):
        result = subprocess.run(
            self.as_user([f"{self.programs}/{program}", *arguments]), capture_output=True, text=True, timeout=TIMEOUT,
            cwd="/", env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
        if result.returncode != 0:
            raise Exception(f"{program} failed: {result.stderr}")
        return result.stdout

    def start(self):
        self.run("pg_ctl", "-s", "-D", f"{self.directory}/data", "-l", f"{self.directory}/log", "-w", "-t", str(TIMEOUT), "start")

    def stop(self):
        self.run("pg_ctl", "-s", "-D", f"{self.directory}/data", "-m", "immediate", "stop")

    def kill(self):
        """Kills every process of the server."""
        with open(f"{self.directory}/data/postmaster.pid") as file:
            first = int(file.readline())
        for process in children(first):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while any(os.path.exists(f"/proc/{process}") for process in [first]):
            time.sleep(0.01)

    def promote(self):
        self.run("pg_ctl", "-s", "-D", f"{self.directory}/data", "-w", "-t", str(TIMEOUT), "promote")

    @property
    def conninfo(self):
        return f"host=127.0.0.1 port={self.port} user=postgres password={self.PASSWORD} dbname=postgres"

    def sql(self, *statements):
        """Runs each statement in a transaction of its own. Returns the output of the last."""
        output = ""
        for statement in statements:
            output = self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.conninfo, "-c", statement)
        return output.strip()

    @property
    def environment(self):
        """The variables by which a client authenticates."""
        return {"PGUSER": "postgres", "PGPASSWORD": self.PASSWORD}

    def url(self, vault, *others):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self, *others))
        return f"postgresql://{hosts}/postgres/{vault}"


class Ceph:
    """An object store of Ceph on the loopback interface: a monitor, an OSD and a gateway, and the bucket `vaults`."""

    BUCKET = "vaults"
    CONFIGURATION = """
[global]
fsid = {cluster}
mon_host = [v2:127.0.0.1:{monitor_port}/0]
ms_mon_client_mode = crc
public_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = {directory}
admin_socket =
log_file = {directory}/$name.log
mon_data = {directory}/mon
osd_data = {directory}/osd
osd_objectstore = bluestore
bluestore_block_size = 2147483648
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_data_avail_crit = 1
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
osd_heartbeat_grace = 5
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_data = {directory}
rgw_thread_pool_size = 64
"""

    def __init__(self, directory):
        self.find_programs()
        self.directory = directory
        self.port, self.monitor_port = free_port(), free_port()
        self.access, self.secret = os.urandom(8).hex(), os.urandom(16).hex()
        self.daemons = {}
        for name in ("", "/mon", "/osd"):
            os.mkdir(directory + name, 0o700)
        self.configuration = f"{directory}/ceph.conf"
        cluster, osd = str(uuid.uuid4()), str(uuid.uuid4())
        with open(self.configuration, "w") as file:
            file.write(self.CONFIGURATION.format(
                cluster=cluster, monitor_port=self.monitor_port, directory=directory, port=self.port))
        self.run("monmaptool", "--create", "--fsid", cluster, "--addv", "a", f"[v2:127.0.0.1:{self.monitor_port}]",
                 f"{directory}/monmap")
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{directory}/monmap")
        self.start("mon")
        self.wait(lambda: self.run("ceph", "mon", "stat"))
        self.run("ceph", "osd", "new", osd)
        self.run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", osd)
        self.run("ceph", "osd", "crush", "add", "osd.0", "1.0", "host=h", "root=default")
        self.start("osd")
        self.wait(lambda: "1 up" in self.run("ceph", "osd", "stat"))
        self.run("radosgw-admin", "user", "create", "--uid=t", "--display-name=t", f"--access-key={self.access}",
                 f"--secret-key={self.secret}")
        self.start("rgw")
        self.wait(lambda: socket.create_connection(("127.0.0.1", self.port), timeout=1).close() or True)
        self.wait(lambda: self.request("PUT", f"/{self.BUCKET}")[0] in (200, 409))

    def find_programs(self):
        if not shutil.which("radosgw") or not shutil.which("ceph-osd") or not shutil.which("ceph-mon"):
            raise Missing("There is no radosgw. Install the packages radosgw, ceph-mon, ceph-osd and ceph-common.")

    def command(self, program):
        return [program]

    def run(self, program, *arguments):
        options = [] if program == "monmaptool" else ["-c", self.configuration]
        result = subprocess.run(
            [*self.command(program), *options, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
        if result.returncode != 0:
            raise Exception(f"{program} failed: {result.stderr}")
        return result.stdout

    def wait(self, condition):
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                if condition():
                    return
                problem = "it is not so"
            except Exception as error:
                problem = error
            if time.monotonic() > end:
                raise Exception(f"the object store did not start: {problem}")
            time.sleep(0.1)

    def start(self, name):
        programs = {"mon": ["ceph-mon", "-i", "a"], "osd": ["ceph-osd", "-i", "0"], "rgw": ["radosgw", "-n", "client.rgw"]}
        program, *arguments = programs[name]
        with open(f"{self.directory}/{name}.out", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                [*self.command(program), "-f", "-c", self.configuration, *arguments], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)

    def kill(self, name):
        self.daemons[name].kill()
        self.daemons[name].wait()

    def stop(self):
        for process in self.daemons.values():
            process.kill()
            process.wait()

    def request(self, method, path, body=b"", headers=()):
        """Sends a request that is signed, and returns the status, the headers and the body of the answer."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = hashlib.sha256(body).hexdigest()
        signed = {"host": f"127.0.0.1:{self.port}", "x-amz-content-sha256": digest, "x-amz-date": now, **dict(headers)}
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        canonical = hashlib.sha256(f"{method}\n{path}\n\n{lines}\n{names}\n{digest}".encode()).hexdigest()
        key = ("AWS4" + self.secret).encode()
        for part in (now[:8], "us-east-1", "s3", "aws4_request", f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{canonical}"):
            key = hmac.digest(key, part.encode(), "sha256")
        authorization = f"AWS4-HMAC-SHA256 Credential={self.access}/{scope},SignedHeaders={names},Signature={key.hex()}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.request(method, path, body, {**signed, "authorization": authorization})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    @property
    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_REGION": "us-east-1"}

    def url(self, vault):
        return f"s3+http://127.0.0.1:{self.port}/{self.BUCKET}/{vault}"


class NextCeph(Ceph):
    """The Ceph of Debian's next release, unpacked by Scripts/setup: each program runs with the loader and libraries there."""

    ROOT = os.path.abspath(f"{os.path.dirname(__file__)}/../../../.build/next-ceph")

    def find_programs(self):
        if not os.path.exists(f"{self.ROOT}/complete"):
            raise Missing(f"There is no {self.ROOT}. Run Scripts/setup nightly.")
        if not shutil.which("ceph"):
            raise Missing("There is no ceph. Install the package ceph-common.")
        self.loader = glob.glob(f"{self.ROOT}/usr/lib/*/ld-linux-*.so.*")[0]
        self.libraries = os.path.dirname(self.loader)
        self.CONFIGURATION += (
            f"osd_class_dir = {self.libraries}/rados-classes\n"
            f"erasure_code_dir = {self.libraries}/ceph/erasure-code\n"
            f"plugin_dir = {self.libraries}/ceph\n")

    def command(self, program):
        # The command of the installed Ceph is enough to talk to the monitor, and needs no other Python.
        if program == "ceph":
            return [program]
        return [self.loader, "--library-path", f"{self.libraries}:{self.libraries}/ceph", f"{self.ROOT}/usr/bin/{program}"]


class LaxStore:
    """An object store that keeps all rules but one: `if-none-match`, `if-match`, `one-step` (two requests at once both find
    their condition true), `etag` (objects have none), `conditions` (a condition is not implemented), or `none`."""

    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}

    def __init__(self, flaw):
        objects, lock, strict = {}, threading.Lock(), threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, body=b"", tag=None):
                self.send_response(status)
                if tag and flaw != "etag":
                    self.send_header("ETag", f'"{tag}"')
                if status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_GET(self):
                body = objects.get(self.path)
                if body is None:
                    return self.answer(404, b"<Code>NoSuchKey</Code>")
                tag = hashlib.md5(body).hexdigest()
                if self.headers.get("If-None-Match", "").strip('"') == tag:
                    return self.answer(304, tag=tag)
                self.answer(200, body, tag)

            do_HEAD = do_GET

            def do_PUT(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                wanted, absent = self.headers.get("If-Match"), self.headers.get("If-None-Match")
                if flaw == "conditions" and (wanted or absent):
                    return self.answer(501, b"<Code>NotImplemented</Code>")
                with lock if flaw == "one-step" else strict:
                    found = objects.get(self.path)
                if flaw == "one-step":
                    time.sleep(0.02)
                else:
                    strict.acquire()
                try:
                    found = found if flaw == "one-step" else objects.get(self.path)
                    if absent == "*" and found is not None and flaw != "if-none-match":
                        return self.answer(412)
                    if wanted and flaw != "if-match":
                        if found is None:
                            return self.answer(404, b"<Code>NoSuchKey</Code>")
                        if wanted.strip('"') != hashlib.md5(found).hexdigest():
                            return self.answer(412)
                    objects[self.path] = body
                finally:
                    if flaw != "one-step":
                        strict.release()
                self.answer(200, tag=hashlib.md5(body).hexdigest())

            def do_DELETE(self):
                objects.pop(self.path, None)
                self.answer(204)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128

        self.objects = objects
        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, vault):
        return f"s3+http://127.0.0.1:{self.server.server_address[1]}/vaults/{vault}"

    def stop(self):
        self.server.shutdown()

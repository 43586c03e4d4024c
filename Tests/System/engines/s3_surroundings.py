#!/usr/bin/env python3
"""Uses a vault in an object store of the test with every source of credentials, with credentials that expire, with good and
bad certificates, and with answers that no object store should give.

usage: s3_surroundings.py SECRET

SECRET is the built tool; coffer-remote-s3 must be beside it (Scripts/helpers). Root must start the test. It goes on in a network
and a mount namespace of its own, with other addresses, hosts and authorities. It needs openssl, iproute2 and util-linux.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import hashlib
import hmac
import http.client
import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import servers
from use_engine import Machine, check, failures

VALUE = "a-value-51b0c7d2"
ECS, EKS, EC2 = "169.254.170.2", "169.254.170.23", "169.254.169.254"
STS, UNKNOWN = "sts.us-east-1.amazonaws.com", ("elsewhere.test", "127.0.0.1.elsewhere.test")
RELATIVE, FULL = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/role"}, "AWS_CONTAINER_CREDENTIALS_FULL_URI"
HTML, PAGE = {"Content-Type": "text/html"}, b"<!DOCTYPE html><html><body>Please log in to the network.</body></html>"
PROCESS = "credential_process = cat $HOME/printed\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(self)
        status, headers, body = self.server.answer(self)
        self.close_connection = not isinstance(body, bytes)
        self.send_response(status)
        for header in (headers if self.close_connection else {"Content-Length": str(len(body))} | headers).items():
            self.send_header(*header)
        self.end_headers()
        for part in body if self.close_connection else [body]:
            self.wfile.write(part)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Remembers each request. `answer` returns a status, headers, and a body in whole or in parts."""

    handle_error = Handler.log_message  # the client has gone, or does not believe the certificate

    def __init__(self, answer, address="127.0.0.1", port=0, certificate=None):
        super().__init__((address, port), Handler)
        self.answer, self.requests, self.port = answer, [], self.server_address[1]
        if certificate:
            (context := ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)).load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def server_close(self):
        self.shutdown()
        super().server_close()


def error(code, status=403):
    return status, {"Content-Type": "application/xml"}, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()


class Surroundings:
    """A store that accepts what is signed as AWS demands it, its vault, machines that use it, and services with credentials."""

    def __init__(self, tool, directory):
        self.tool, self.directory, self.inner, self.pin = os.path.abspath(tool), directory, servers.LaxStore("none"), None
        # Access keys that were accepted, and that had expired. Other answers to a method: how many, and for which key only.
        self.keys, self.expired, self.heard, self.used, self.refused, self.changes, self.odd = {}, set(), [], [], [], 0, None
        self.url = f"s3+http://127.0.0.1:{Server(self.answer).port}/vaults/used"
        self.admin = self.machine("admin", **self.variables(self.key("ADMIN")))
        result = self.admin.run("init", "--vault", self.url, "--key-file", f"{directory}/key", COFFER_KEY_FILE=None)
        check("init with a session token in the environment", result[0] == 0, result)
        self.pin = re.search(r"identity pin: (\S+)", self.admin.run("verify")[1]).group(1)
        self.admin.run("set", "token", given=VALUE)

    def key(self, name, has_token=True):
        self.keys[name] = (os.urandom(20).hex(), os.urandom(60).hex() + "+/=" if has_token else None)
        return name

    def answer(self, request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/us-east-1/s3/aws4_request),"
                             r"SignedHeaders=([^,]+),Signature=(\w+)", headers.get("authorization", ""))
        access, scope, names, signature = found.groups() if found else ("", "", "host", "")
        secret, token = self.keys.get(access, ("", None))
        digest = hashlib.sha256(request.body).hexdigest()
        lines = "".join(f"{name}:{headers.get(name)}\n" for name in names.split(";"))
        canonical = hashlib.sha256(f"{request.command}\n{request.path}\n\n{lines}\n{names}\n{digest}".encode()).hexdigest()
        key = ("AWS4" + secret).encode()
        for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{headers.get('x-amz-date')}\n{scope}\n{canonical}"):
            key = hmac.digest(key, part.encode(), "sha256")
        must = {name for name in headers if name.startswith(("x-amz-", "if-"))} | {"host"}
        is_signed = key.hex() == signature and must <= set(names.split(";")) and digest == headers["x-amz-content-sha256"]
        self.refused += [access] * (access in self.expired)
        for is_refused, code, status in (
                (not found, "AccessDenied", 403), (access not in self.keys, "InvalidAccessKeyId", 403),
                (headers.get("x-amz-security-token") != token, "InvalidToken", 400),
                (not is_signed, "SignatureDoesNotMatch", 403), (access in self.expired, "ExpiredToken", 400)):
            if is_refused:
                return error(code, status)
        self.used.append(access)
        method, answer, times, only = self.odd or ("", None, 0, None)
        if request.command != method or only not in (None, access) or times == 0:
            return self.operate(request)
        self.odd = (method, answer, times - 1, only)
        return answer(request) if callable(answer) else answer

    def operate(self, request):
        connection = http.client.HTTPConnection(*self.inner.server.server_address)
        connection.request(request.command, request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        self.changes += request.command == "PUT" and answer.status == 200
        return answer.status, {"ETag": tag} if (tag := answer.headers["ETag"]) else {}, answer.read()

    def machine(self, name, **variables):
        return Machine(self.tool, self.directory, name, {
            "COFFER_BACKEND": f"vault:{self.url}", "COFFER_PIN": self.pin, "AWS_EC2_METADATA_DISABLED": None, **variables})

    def variables(self, key):
        return dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), (key, *self.keys[key])))

    def profile(self, key, name="default"):
        return f"[{name}]\n" + "".join(f"{name.lower()} = {value}\n" for name, value in self.variables(key).items())

    def document(self, key, seconds=3600, zone="Z"):
        """What a credential_process prints and a service answers. The credentials are good for so many seconds."""
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + (seconds or 0))) + zone
        found = dict(zip(("AccessKeyId", "SecretAccessKey", "SessionToken"), (key, *self.keys[key])))
        return json.dumps(found | {"Version": 1} | ({"Expiration": end} if seconds else {}))

    def container(self, *documents, address=ECS, token=None):
        answers = [(200, {}, document.replace("SessionToken", "Token").encode()) for document in documents]
        left = iter(answers + answers[-1:] * 99)  # the last one again and again
        return Server(lambda request: next(left) if (request.path, request.headers.get("Authorization")) == ("/role", token)
                      else error("AccessDenied"), address, 80)

    def machine_service(self, key):
        base, header = "/latest/meta-data/iam/security-credentials/", "x-aws-ec2-metadata-token"
        answers = {("PUT", "/latest/api/token", "300", None): b"session", ("GET", base, None, "session"): b"the-role",
                   ("GET", base + "the-role", None, "session"): self.document(key).encode()}
        return Server(lambda request: (200, {}, answers[
            (request.command, request.path, *map(request.headers.get, (f"{header}-ttl-seconds", header)))]), EC2, 80)

    def token_service(self, key, certificate="sts", instead=None):
        fields = "".join(f"<{name}>{value}</{name}>" for name, value in json.loads(self.document(key)).items())
        answer = instead or (200, {}, f"<A><Credentials>{fields}</Credentials></A>".encode())
        return Server(lambda _: answer, port=443, certificate=f"{self.directory}/{certificate}.pem")

    def gets(self, name, machine, key, **variables):
        del self.used[:]
        result = machine.run("get", "token", **variables)
        self.heard.append(result[2])
        check(name, result[:2] == (0, VALUE) and set(self.used) == {key}, (result, self.used))

    def fails(self, name, result, statuses, *words):
        is_sentence = len(result[2]) > 40 and result[2].count("\n") == 1 and all(word in result[2] for word in words)
        check(name, result[0] in statuses and is_sentence, result)
        print(f"       {result[2].strip()}", flush=True)
        self.heard.append(result[2])

    def write(self, machine, path, text):
        os.makedirs(f"{machine.home}/.aws", exist_ok=True)
        with open(f"{machine.home}/{path}", "w", newline="") as file:
            file.write(text)
        return file.name


def sources(s):
    web, profile, process, container, last, other, first = map(s.key, "WEB PROFILE PROCESS CONTAINER LAST OTHER FIRST".split())
    machine, own, plain = s.machine("sources"), s.variables(first), s.variables(s.key("PLAIN", has_token=False))

    def get(**variables):
        return machine.run("get", "token", **variables)
    s.gets("environment without a session token", machine, "PLAIN", **plain)
    s.gets("environment with an empty session token", machine, "PLAIN", **plain | {"AWS_SESSION_TOKEN": ""})
    s.gets("environment with a session token", machine, first, **own)
    identity, role, file = "an.identity+of/the=platform&x", "arn:aws:iam::1:role/a b", "AWS_WEB_IDENTITY_TOKEN_FILE"
    variables = {file: s.write(machine, "identity", identity + "\n"), "AWS_ROLE_ARN": role}
    for name, given, status, word in (
            ("no source at all", {}, 77, "There are no credentials"),
            ("a profile that is not there", {"AWS_PROFILE": "none"}, 77, "There are no credentials"),
            ("STS is away", variables, 69, "security token service"),
            ("no web identity token", variables | {file: "/nowhere/x"}, 78, "/nowhere/x"),
            ("ECS is away", RELATIVE, 69, "container"),
            *((f"{host} without TLS", {FULL: f"http://{host}/role"}, 78, "without TLS")
              for host in (*UNKNOWN, "localhost@elsewhere.test"))):
        s.fails(name, get(**given), [status], word)
    with s.token_service(web) as sts:
        s.gets("web identity", machine, web, **variables)
        form = dict(urllib.parse.parse_qsl(sts.requests[0].body.decode()))
        wanted = {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": identity, "RoleArn": role}
        check("one call of STS with the token", len(sts.requests) == 1 and form.items() >= wanted.items(), form)
    for certificate, instead in (("sts", error("AccessDenied")), ("sts", (200, HTML, PAGE)), ("sts-unknown", None)):
        with s.token_service(web, certificate, instead) as sts:
            s.fails(f"STS says no: {str(instead)[:40]}", get(**variables), [77] if instead else [69, 77], "token service")
            check("it is asked only if it is known", bool(sts.requests) == (certificate == "sts"), len(sts.requests))
    both = f"{s.profile(profile)}\n# a comment\n{s.profile(other, 'other')}"
    s.write(machine, "printed", s.document(process))
    for name, path, text, key, given in (
            ("the default profile", "credentials", both, profile, {}),
            ("empty variables are as none", "credentials", both, profile, dict.fromkeys([*own, "AWS_PROFILE"], "")),
            ("a profile of credentials", "credentials", both, other, {"AWS_PROFILE": "other"}),
            ("line ends of Windows", "credentials", both.replace("\n", "\r\n"), other, {"AWS_PROFILE": "other"}),
            ("a profile of config", "config", s.profile(other, "profile work"), other, {"AWS_PROFILE": "work"}),
            ("a credential_process", "config", f"[profile work]\n{PROCESS}", process, {"AWS_PROFILE": "work"})):
        path = s.write(machine, f".aws/{path}", text)
        s.gets(name, machine, key, **given)
        os.remove(path)
    for bad in ("echo no; exit 3", "echo '{]'", "/nowhere/program", "sleep 60", "echo; sleep 60"):
        path = s.write(machine, ".aws/config", f"[default]\ncredential_process = {bad}\n")
        s.fails(f"a credential_process that is {bad}", get(), [77], "credential_process")
        os.remove(path)
    for instead in (error("AccessDenied"), (200, HTML, PAGE)):
        with Server(lambda _: instead, ECS, 80), s.machine_service(last) as service:
            s.fails(f"ECS says no: {instead[2][:40]}", get(**RELATIVE), [77], "container")
            check("the machine's role is not taken in its place", not service.requests, len(service.requests))
    pod = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": s.write(machine, "pod", "token-of-a-pod\n")}
    with s.container(s.document(container), address=EKS, token="token-of-a-pod"):
        s.gets("EKS", machine, container, **pod | {FULL: f"http://{EKS}/role"})
    with Server(lambda _: time.sleep(30), EC2, 80) as service:
        start = time.monotonic()
        s.fails("IMDS does not answer", get(), [77], "There are no credentials")
        check("it is not waited for long", len(service.requests) == 1 and time.monotonic() - start < 5, time.monotonic() - start)
    path = s.write(machine, ".aws/credentials", s.profile(profile))
    with s.token_service(web), s.container(s.document(container)), s.machine_service(last) as service:
        s.gets("of all sources, the environment is first", machine, first, **own, **variables, **RELATIVE)
        s.gets("then the web identity", machine, web, **variables, **RELATIVE)
        s.gets("then the profile", machine, profile, **RELATIVE)
        os.remove(path)
        s.gets("then the container", machine, container, **RELATIVE)
        result = get(AWS_EC2_METADATA_DISABLED="true")
        check("the machine was not asked", result[0] == 77 and not service.requests, (result, len(service.requests)))
        s.gets("then the machine, with IMDSv2", machine, last)


def expiry(s):
    machine = s.machine("expiry", **RELATIVE)

    def change(first):  # which have expired when the change sends its second request
        s.odd = ("PUT", error("ExpiredToken", 400), 99, first)
        return machine.run("set", "token", given=first)
    for zone in ("Z", "+00:00", ".123456Z"):
        with s.container(s.document(s.key(f"SOON{zone}"), 200, zone), s.document(s.key(f"NEXT{zone}"))):
            result = change(f"SOON{zone}")
            check(f"keys that end soon are replaced before the next request ({zone})", result[0] == 0, result)
    with s.container(s.document(s.key("UNKNOWN")), s.document(s.key("AFTER"))):
        before, result = dict(s.inner.objects), change("UNKNOWN")
        is_refused = result[0] == 77 and s.inner.objects == before and "credentials have expired" in result[2]
        check(f"after an unknown end the change is {'refused' if is_refused else 'made'}", is_refused or result[0] == 0, result)
        check("the next command takes new keys", change("UNKNOWN")[0] == 0)
    with s.container(s.document(s.key("SHORT"), 200), "{}") as service:
        result = change("none")
        check("good keys are used while their source fails", result[0] == 0 and len(service.requests) > 1, result)

    # The helpers run on, and the store refuses the first keys from some time on.
    def wait(keys, found):
        end = time.monotonic() + 20
        while not keys <= set(found) and time.monotonic() < end:
            time.sleep(0.1)
    watchers = {name: s.machine(name) for name in ("known", "unknown", "profile")}
    processes, all_olds = {}, {"OLD-known", "OLD-unknown", "OLD-profile"}
    for age, seconds in (("OLD", 301), ("NEW", 3600)):
        for name, watcher in watchers.items():
            key = s.key(f"{age}-{name}")
            s.write(watcher, "printed", s.document(key, seconds if name == "known" else None))
            s.write(watcher, ".aws/config", s.profile(key) if name == "profile" else f"[default]\n{PROCESS}")
            variables = {variable: value for variable, value in watcher.variables.items() if value is not None}
            processes[name] = processes.get(name) or subprocess.Popen(
                [s.tool, "watch", "token"], env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait(all_olds, s.used)
    s.expired |= all_olds
    wait({"OLD-unknown", "OLD-profile"}, s.refused)
    s.admin.run("set", "token", given="watched")
    del s.used[:]
    wait({"NEW-known", "NEW-unknown", "NEW-profile"}, s.used)
    time.sleep(1)
    for name, process in processes.items():
        process.kill()
        out, err = process.communicate()
        check(f"a watch goes on after the end of its keys: {name}", "token" in out, err)
        s.heard.append(err)


def odd_stores(s):
    machine = s.machine("odd", **s.variables("ADMIN"))
    for name in ("store", "unknown", "other", "expired"):
        with Server(s.answer, certificate=f"{s.directory}/{name}.pem") as server:
            url = f"s3+https://store.test:{server.port}/vaults/tls"
            results = [machine.run(*arguments, given=VALUE, COFFER_BACKEND=f"vault:{url}", COFFER_PIN=None)
                       for arguments in (("init", "--vault", url), ("set", "token"), ("get", "token"))]
            if name == "store":
                check("init, set and get with a good certificate", [result[0] for result in results] == [0, 0, 0]
                      and results[2][1] == VALUE and len(server.requests) > 3, results)
                continue
            for result in results:
                s.fails(f"a bad certificate: {name}", result, [77], "store.test", "did not prove who it is")
            check("nothing was sent", not server.requests, len(server.requests))

    def fails(name, answer, statuses, *words, methods=("GET", "PUT")):
        for method in methods:
            before, s.odd = dict(s.inner.objects), (method, answer, 99, None)
            result = machine.run("get" if method == "GET" else "set", "token", given="lost")
            s.odd = None
            s.fails(f"{method}: {name}", result, statuses, *words)
            check("nothing is changed", s.inner.objects == before)

    def is_made_once(name, answer):
        before, s.odd = s.changes, ("PUT", answer, 1, None)
        result, found = machine.run("set", "token", given=name), s.admin.run("get", "token")
        check(f"made once: {name}", result[0] == 0 and found[:2] == (0, name) and s.changes == before + 1, (result, found))
    for code, status, ends, word in (
            ("RequestTimeTooSkewed", 403, 77, "clock"), ("SignatureDoesNotMatch", 403, 77, "secret key"),
            ("InvalidAccessKeyId", 403, 77, "access key"), ("ExpiredToken", 403, 77, "expired"),
            ("TokenRefreshRequired", 400, 77, "expired"), ("InvalidToken", 400, 77, "Token"), ("AccessDenied", 403, 77, "policy"),
            ("NoSuchBucket", 404, 78, "no bucket"), ("AuthorizationHeaderMalformed", 400, 78, "AWS_REGION")):
        fails(f"{status} {code}", error(code, status), [ends], word)
    for code, status, ends in (("SlowDown", 503, 75), ("InternalError", 500, 74)):
        fails(f"{status} {code}", error(code, status), [ends], code, methods=["GET"])
        is_made_once(f"{status} {code}", error(code, status))
    with Server(s.answer) as trap:
        to = {"Location": f"http://127.0.0.1:{trap.port}/vaults/used", "x-amz-bucket-region": "eu-west-1"}
        for status in (301, 307, 308):
            fails(f"{status} to another host", (status, to, b""), [78], "eu-west-1")
        check("no redirect is followed", not trap.requests, len(trap.requests))
    whole, tag = s.inner.objects["/vaults/used"], {"ETag": '"0123456789abcdef"'}
    for name, answer, statuses in (
            ("a page of a proxy", (200, HTML, PAGE), (65, 69, 78)),
            ("a page with an entity tag", (200, HTML | tag, PAGE), (65, 69, 78)),
            ("nothing", (200, tag, b""), (65, 69)),
            ("a cut answer", lambda _: (200, tag | {"Content-Length": str(len(whole))}, iter([whole[:5000]])), [69]),
            ("a cut answer without a length", lambda _: (200, tag, iter([whole[:5000]])), (65, 69)),
            ("an answer that grows without an end", lambda _: (200, tag, iter(lambda: bytes(1 << 20), None)), (64, 69)),
            ("a slow answer without an end", lambda _: (200, tag, iter(lambda: time.sleep(0.5) or b"x", None)), [69])):
        fails(name, answer, statuses, methods=["GET"])
    is_made_once("a page of a proxy", (200, HTML, PAGE))
    is_made_once("a cut answer after it", lambda request: (s.operate(request)[0], {"Content-Length": "9"}, iter([b"<"])))
    is_made_once("a cut answer before it", lambda _: (200, {"Content-Length": "9"}, iter([b"<"])))
    # Last, because a machine that believes it refuses the vault afterwards.
    is_made_once("a page with an entity tag", (200, HTML | tag, PAGE))


def prepare(directory):
    """Gives the namespaces of this process a network, hosts, and certificates of an authority that is known and of another."""
    new = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    commands = [f"{new} -x509 -subj /CN={name} -keyout {name}.key -out {name}.authority" for name in ("known", "stranger")]
    for name, host, by, days in (("store", "store.test", "known", 9), ("unknown", "store.test", "stranger", 9),
                                 ("other", "other.test", "known", 9), ("expired", "store.test", "known", -1),
                                 ("sts", STS, "known", 9), ("sts-unknown", STS, "stranger", 9)):
        commands += [f"{new} -subj /CN={host} -addext subjectAltName=DNS:{host} -keyout own.key -out request",
                     f"openssl x509 -req -in request -CA {by}.authority -CAkey {by}.key -CAcreateserial -days {days} "
                     f"-copy_extensions copy -out own && cat own own.key > {name}.pem"]
    commands += [f"ip address add {address}/32 dev lo" for address in (ECS, EKS, EC2)]
    for command in (*commands, "ip link set lo up", f"echo 127.0.0.1 localhost store.test {' '.join(UNKNOWN)} {STS} > hosts",
                    "mount --bind hosts /etc/hosts", "mount --bind known.authority /etc/ssl/certs/ca-certificates.crt"):
        subprocess.run(command, check=True, capture_output=True, cwd=directory, shell=True)


def main():
    if len(sys.argv) != 2 or os.geteuid() != 0:
        print(__doc__.split("\n\n")[1] + "\n\nIt must be started by root.", file=sys.stderr)
        return 64
    # The program that makes the namespaces becomes this one, so the process is the same.
    if os.environ.pop("COFFER_IN_NAMESPACES", None) != str(os.getpid()):
        os.execvpe("unshare", ["unshare", "--net", "--mount", sys.executable, os.path.abspath(__file__), sys.argv[1]],
                   os.environ | {"COFFER_IN_NAMESPACES": str(os.getpid())})
    with tempfile.TemporaryDirectory(prefix="coffer-s3-") as directory:
        prepare(directory)
        s = Surroundings(sys.argv[1], directory)
        for part in (sources, expiry, odd_stores):
            part(s)
        hidden = [text for pair in s.keys.values() for text in pair if text] + ["an.identity", "token-of-a-pod", VALUE]
        found = [message for message in s.heard if any(text in message for text in hidden)]
        check("no secret is in a message", sum(map(len, s.heard)) > 1000 and not found, len(found))
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""`lull web`: the same numbers as the verbs, for who has the token, and for nobody else,
whatever they send. Everything is tried on loopback."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import guest
import page_test

NOBODY = 65534
PROGRAM = """import gc
for _ in range(20):
    gc.collect()
"""

# What another user finds of `lull web`: by its port, in /proc, in the state of its owner.
LOOKER = """import json, os, socket, sys
server, port, state = sys.argv[1:]
statuses, said, readable = [], "", []
for target in ("/", "/data", "/?token=" + "0" * 64, "/job/1"):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n".encode())
        reply = b""
        while piece := connection.recv(65536):
            reply += piece
    statuses.append(int(reply.split()[1]))
    said += reply.decode("latin-1")
for name in os.listdir(f"/proc/{server}"):
    if name in ("environ", "mem", "maps", "fd"):
        try:
            if name == "fd":
                os.listdir(f"/proc/{server}/fd")
            else:
                open(f"/proc/{server}/{name}", "rb").read(1)
            readable.append(name)
        except OSError:
            pass
with open(f"/proc/{server}/cmdline") as file:
    said += file.read()
for folder, _, names in os.walk(state):
    for name in names:
        path = os.path.join(folder, name)
        if os.access(path, os.R_OK):
            readable.append(path)
print(json.dumps({"uid": os.getuid(), "statuses": statuses, "said": said, "readable": readable}))
"""


class Reply:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1]) if lines[0] else 0
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()


class Web(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.temporary = tempfile.TemporaryDirectory(prefix="lull-web-")
        cls.program = os.path.join(cls.temporary.name, "program.py")
        with open(cls.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        done = guest.execute([guest.LULL, "run", "--quiet", "--name", "first", "--",
                              "python3", cls.program], cls.host.environment)
        assert done.status == 0, done.stderr
        for name in ("second", "third"):
            path = os.path.join(cls.temporary.name, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(page_test.trace(page_test.HOSTILE + [name]), file)
            done = guest.execute([guest.LULL, "import", "--quiet", "--name", name, path],
                                 cls.host.environment)
            assert done.status == 0, done.stderr
        guest.wait_until(lambda: all(job["ended"] for job in cls.answer("jobs")["jobs"]))
        cls.ids = {job["name"]: job["id"] for job in cls.answer("jobs")["jobs"]}
        cls.server, cls.address = cls.start()
        parts = urllib.parse.urlsplit(cls.address)
        cls.port, cls.token = parts.port, parts.query.removeprefix("token=")
        cls.cookie, cls.folder = cls.enter(cls.port, cls.token)

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGINT)
        assert cls.server.wait(30) == 0
        cls.server.stdout.close()
        cls.host.close()
        cls.temporary.cleanup()

    @classmethod
    def start(cls, *arguments, **options):
        server = subprocess.Popen([guest.LULL, "web", *arguments], stdout=subprocess.PIPE,
                                  env=cls.host.environment, text=True, **options)
        return server, server.stdout.readline().strip()

    @classmethod
    def answer(cls, *arguments):
        done = guest.execute([guest.LULL, *arguments, "--json"], cls.host.environment)
        assert done.status == 0, done.stderr
        return json.loads(done.stdout)

    @staticmethod
    def raw(port, request, seconds=60):
        with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
            try:
                connection.sendall(request)
            except (BrokenPipeError, ConnectionResetError):
                pass  # what it said before is still there to be read
            received = b""
            while True:
                try:
                    piece = connection.recv(1 << 20)
                except ConnectionResetError:
                    break
                if not piece:
                    break
                received += piece
        return Reply(received)

    @classmethod
    def send(cls, target, port=None, method="GET", cookie=None, host=None, **headers):
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port or cls.port}'}"]
        if cookie:
            lines.append(f"Cookie: {cookie}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return cls.raw(port or cls.port, ("\r\n".join(lines) + "\r\n\r\n").encode())

    @classmethod
    def enter(cls, port, token):
        reply = cls.send(f"/?token={token}", port)
        assert reply.status == 303, reply.status
        return reply.headers["set-cookie"].split(";")[0], reply.headers["location"]

    def get(self, target, **headers):
        return self.send(self.folder + target, cookie=self.cookie, **headers)

    def data(self, target):
        reply = self.get(target)
        self.assertEqual(reply.status, 200, reply.body[:500])
        self.assertEqual(reply.headers["content-type"], "application/json")
        return json.loads(reply.body)

    def test_the_token_becomes_a_cookie_that_scripts_and_others_do_not_get(self):
        self.assertRegex(self.address, r"^http://127\.0\.0\.1:[0-9]+/\?token=[0-9a-f]{64}$")
        reply = self.send(f"/?token={self.token}")
        self.assertEqual(reply.status, 303)
        # Browsers show cookies to all ports of a host, but only below their path.
        self.assertRegex(self.folder, "^/[0-9a-f]{64}/$")
        cookie = [part.strip() for part in reply.headers["set-cookie"].split(";")]
        self.assertEqual(cookie[1:], ["HttpOnly", "SameSite=Strict", f"Path={self.folder}"])
        secrets = {self.token, self.folder.strip("/"), cookie[0].partition("=")[2]}
        self.assertEqual([len(secret) for secret in secrets], [64, 64, 64])
        self.assertEqual(reply.body, b"")

    def test_without_the_cookie_nothing_is_told_not_even_what_there_is(self):
        bodies = set()
        for target in ("/", self.folder, f"{self.folder}data",
                       f"{self.folder}job/{self.ids['first']}", "/no/such", "/?token=",
                       f"/?token={self.token[:-1]}", f"/?token={self.token}0",
                       f"/data?token={self.token}", f"{self.folder}?token={self.token}",
                       "/?token=" + "0" * 64):
            for cookie in (None, "lull=1", self.cookie[:-1], self.cookie + "0",
                           "x" + self.cookie, self.cookie.split("=")[0] + "="):
                reply = self.send(target, cookie=cookie)
                self.assertEqual(reply.status, 403, (target, cookie))
                bodies.add(reply.body)
        other = f"/{'0' * 64}/"
        for target in ("/", "/data", other, f"{other}data", self.folder.rstrip("/")):
            reply = self.send(target, cookie=self.cookie)
            self.assertEqual(reply.status, 403, target)
            bodies.add(reply.body)
        self.assertEqual(len(bodies), 1)
        self.assertNotIn(b"first", bodies.pop())

    def test_a_page_of_somebody_else_gets_nothing(self):
        for host in ("evil.example", f"evil.example:{self.port}", "127.0.0.1.evil.example",
                     "localhost.evil.example:80", "127.0.0.1:80@evil.example", "127.0.0.1:",
                     "127.0.0.1:999999", "0.0.0.0", ""):
            request = (f"GET /?token={self.token} HTTP/1.1\r\nHost: {host}\r\n"
                       f"Cookie: {self.cookie}\r\n\r\n").encode()
            self.assertEqual(self.raw(self.port, request).status, 403, host)
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{self.port}",
                       f"http://localhost:{self.port}", "http://127.0.0.1:1"):
            self.assertEqual(self.get("data", Origin=origin).status, 403, origin)
        for site in ("cross-site", "same-site", "x"):
            self.assertEqual(self.get("data", Sec_Fetch_Site=site).status, 403, site)
        own = f"http://127.0.0.1:{self.port}"
        self.assertEqual(self.get("data", Origin=own, Sec_Fetch_Site="same-origin").status, 200)
        for host in ("localhost", "localhost:8000", "[::1]:9"):  # by a tunnel
            self.assertEqual(self.get("data", host=host).status, 200, host)
        twice = (f"GET {self.folder}data HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n"
                 f"Cookie: {self.cookie}\r\n\r\n").encode()
        self.assertIn(self.raw(self.port, twice).status, (400, 403))
        no_host = f"GET {self.folder}data HTTP/1.1\r\nCookie: {self.cookie}\r\n\r\n".encode()
        self.assertEqual(self.raw(self.port, no_host).status, 403)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")
    def test_another_user_of_the_host_gets_nothing(self):
        state = os.path.dirname(self.host.environment["XDG_DATA_HOME"])
        before = os.stat(state).st_mode
        os.chmod(state, 0o755)  # so that what lull itself makes has to protect it
        self.addCleanup(os.chmod, state, before)
        theirs = tempfile.mkdtemp(prefix="lull-web-other-")
        self.addCleanup(shutil.rmtree, theirs)
        program = shutil.copy(guest.LULL, os.path.join(theirs, "lull"))
        os.chmod(program, 0o755)
        os.chown(theirs, NOBODY, NOBODY)
        secrets = [self.token, self.folder.strip("/"), self.cookie.partition("=")[2], "first"]
        looker = os.path.join(theirs, "looker.py")
        with open(looker, "w", encoding="utf-8") as file:
            file.write(LOOKER)
        os.chmod(looker, 0o644)
        stranger = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": theirs}
        environment = {"PATH": os.environ["PATH"], "HOME": theirs,
                       "LULL_RUNTIME_DIR": f"{theirs}/run"}
        seen = guest.execute(["python3", looker, str(self.server.pid), str(self.port), state],
                             environment, **stranger)
        self.assertEqual(seen.status, 0, seen.stderr)
        report = json.loads(seen.stdout)
        self.assertEqual(report["uid"], NOBODY)
        self.assertEqual(set(report["statuses"]), {403})
        self.assertEqual(report["readable"], [])
        self.assertIn("web", report["said"])  # its arguments: anybody sees those
        for secret in secrets:
            self.assertNotIn(secret, report["said"])
        # A page of their own, of this user's collector.
        sockets = [os.path.join(folder, name) for folder, _, names in os.walk(state)
                   for name in names if name.endswith(".sock")]
        self.assertTrue(sockets)
        for path in sockets:
            done = guest.execute([program, "web", "--collector", f"unix:{path}"], environment,
                                 **stranger)
            self.assertEqual(done.status, 1, done.stdout)
            self.assertNotIn("token=", done.stdout)

    def test_paths_lead_nowhere_but_to_its_pages(self):
        job = self.ids["first"]
        for target in ("/", "../etc/passwd", "job/../../../etc/passwd", "job/%2e%2e/%2e%2e/etc",
                       "/etc/passwd", f"job/{job}/../{job}", f"job/{job}/", f"job/{job}%00",
                       f"job/{job[:8]}", f"job/{job.upper()}", "job/", "job/first", "data/data",
                       f"..{self.folder}data", "http://127.0.0.1/", "diff",
                       "diff?a=first&b=second", f"diff?a={job}", f"diff?b={job}&a={job}",
                       f"diff?a={job}&b=../x", f"diff?a={','.join([job] * 17)}&b={job}",
                       f"job/{job}?x=1", "*", "?x"):
            self.assertEqual(self.get(target).status, 404, target)
            self.assertEqual(self.send(target, cookie=self.cookie).status, 403, target)
        self.assertEqual(self.get(f"diff?a={job}&b={job}").status, 400)  # with itself
        self.assertEqual(self.get("job/" + "0" * 32).status, 404)

    def test_it_only_reads(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "BREW"):
            reply = self.get("", method=method)
            self.assertEqual((reply.status, reply.headers.get("allow")), (405, "GET, HEAD"))
        for method in ("POST", "PUT"):
            self.assertEqual(self.get("", method=method, Content_Length="5").status, 405)
        self.assertEqual(self.get("", Content_Length="5").status, 400)
        self.assertEqual(self.get("", Transfer_Encoding="chunked").status, 400)
        head = self.get("", method="HEAD")
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertGreater(int(head.headers["content-length"]), 10_000)

    def test_no_header_is_too_large_and_nothing_else_brings_it_down(self):
        self.assertIn(self.get("", X="y" * 100_000).status, (0, 431))
        many = "".join(f"X{i}: y\r\n" for i in range(100_000))
        self.assertIn(self.raw(self.port, f"GET / HTTP/1.1\r\n{many}\r\n".encode()).status,
                      (0, 431))
        for junk in (b"\x00" * 1000, b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\r\n" * 1000,
                     b"GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"A" * 50_000):
            self.raw(self.port, junk)
        self.assertEqual(self.get("data").status, 200)

    def test_headers_keep_the_page_to_itself(self):
        for target in ("", "data", f"job/{self.ids['first']}"):
            headers = self.get(target).headers
            self.assertEqual(headers["cache-control"], "no-store")
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertEqual(headers["referrer-policy"], "no-referrer")
            self.assertEqual(headers["cross-origin-resource-policy"], "same-origin")
            self.assertIn("frame-ancestors 'none'", headers["content-security-policy"])
            self.assertNotIn("access-control-allow-origin", headers)
        page = self.get("").body.decode()
        policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
        self.assertIn("default-src 'none'; connect-src 'self'; script-src 'sha256-", policy)

    def test_of_requests_one_behind_the_other_the_first_is_answered(self):
        one = f"GET {self.folder}data HTTP/1.1\r\nHost: localhost\r\nCookie: {self.cookie}\r\n\r\n"
        reply = self.raw(self.port, (one * 50).encode())
        self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"))
        self.assertEqual(len(reply.body), int(reply.headers["content-length"]))

    def test_who_is_slow_keeps_nobody_waiting(self):
        readers = []
        for _ in range(8):  # they ask for a page and take nothing of it
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", self.port))
            reader.sendall(f"GET {self.folder}job/{self.ids['first']} HTTP/1.1\r\nHost: localhost\r\n"
                           f"Cookie: {self.cookie}\r\n\r\n".encode())
            readers.append(reader)
        began = time.monotonic()
        self.assertEqual(self.get("data").status, 200)
        writers = []
        for _ in range(200):  # more than it takes, and none ends its head
            writer = socket.create_connection(("127.0.0.1", self.port))
            writer.sendall(b"GET / HTTP/1.1\r\nX: ")
            writers.append(writer)
        self.assertEqual(self.get("data").status, 200)
        self.assertLess(time.monotonic() - began, 9)  # none of them was cut off by time
        for connection in readers + writers:
            connection.close()

    def test_numbers_are_those_of_the_verbs(self):
        self.assertEqual(self.data("data")["jobs"], self.answer("jobs")["jobs"])
        for job in self.ids.values():
            shown = self.data(f"job/{job}/data")
            shown = page_test.with_frames(shown, shown["frames"])
            self.assertEqual(shown["report"], self.answer("report", job, "--top", "100"))
            page = page_test.Page(self.get(f"job/{job}").body.decode())
            self.assertEqual(page_test.with_frames(page.data, page.data["frames"]), shown)
        sides = self.ids["second"], self.ids["third"]
        target = f"a={sides[0]}&b={sides[1]}"
        diff = self.data(f"diff/data?{target}")["diff"]
        self.assertEqual(diff, self.answer("diff", *sides, "--top", "30"))
        self.assertEqual(page_test.Page(self.get(f"diff?{target}").body.decode()).data["diff"],
                         diff)

    def test_a_list_that_is_cut_says_so(self):
        self.assertNotIn("most", self.data("data"))
        host = guest.Host()
        self.addCleanup(host.close)
        done = guest.execute([guest.LULL, "run", "--quiet", "--", "true"], host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        data = host.environment["XDG_DATA_HOME"]
        guest.stop_collector(data)
        (path,) = glob.glob(os.path.join(data, "**", "*.db"), recursive=True)
        with sqlite3.connect(path) as database:
            database.row_factory = sqlite3.Row
            (row,) = map(dict, database.execute("SELECT * FROM jobs"))
        del row["id"]

        def add(numbers):
            guest.stop_collector(data)
            with sqlite3.connect(path) as database:
                for number in numbers:
                    uuid = f"{number:032x}"
                    info = row["job_info"].replace(row["uuid"].encode(), uuid.encode())
                    database.execute(
                        f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                        tuple({**row, "uuid": uuid, "job_info": info}.values()))

        def listed():
            server = subprocess.Popen([guest.LULL, "web"], stdout=subprocess.PIPE,
                                      env=host.environment, text=True)
            try:
                address = server.stdout.readline().strip()
                port = urllib.parse.urlsplit(address).port
                cookie, folder = self.enter(port, address.partition("=")[2])
                answer = json.loads(self.send(f"{folder}data", port, cookie=cookie).body)
            finally:
                server.kill()
                server.wait()
                server.stdout.close()
            return answer.get("most"), [job["id"] for job in answer["jobs"]]

        add(range(499))
        most, ids = listed()
        self.assertEqual((most, len(set(ids)), row["uuid"] in ids), (None, 500, True))
        add([499])
        most, ids = listed()
        self.assertEqual((most, len(set(ids)), row["uuid"] in ids), (500, 500, False))

    def test_what_has_not_changed_is_not_sent_again(self):
        first = self.get("data")
        again = self.get("data", If_None_Match=first.headers["etag"])
        self.assertEqual((again.status, again.body), (304, b""))
        self.assertEqual(self.get("data", If_None_Match='"0"').status, 200)

    def test_a_page_goes_on_with_its_job(self):
        job = subprocess.Popen([guest.LULL, "run", "--quiet", "--name", "runs", "--", "python3",
                                "-c", "import gc, sys\nfor line in sys.stdin:\n    gc.collect()"],
                               env=self.host.environment, stdin=subprocess.PIPE, text=True)
        try:
            def named():
                return {one["name"]: one for one in self.data("data")["jobs"]}.get("runs")
            guest.wait_until(named)
            target = f"job/{named()['id']}/data"

            def pauses():
                job.stdin.write("again\n")
                job.stdin.flush()
                return self.data(target)["report"]["summary"]["gc_pauses"]
            guest.wait_until(lambda: pauses() > 0)
            before = pauses()
            guest.wait_until(lambda: pauses() > before)
            self.assertTrue(self.data(target)["live"])
        finally:
            job.stdin.close()
            job.wait(60)
        guest.wait_until(lambda: not self.data(target).get("live"))

    def test_says_that_its_collector_is_away_and_goes_on_once_it_is_back(self):
        listen = f"unix:{self.temporary.name}/collector"
        database = os.path.join(self.temporary.name, "away.db")
        collector = guest.start_collector(listen, database, self.host.environment)
        server, address = self.start("--collector", listen)
        try:
            port = urllib.parse.urlsplit(address).port
            cookie, folder = self.enter(port, address.partition("=")[2])
            self.assertEqual(self.send(folder, port, cookie=cookie).status, 200)
            collector.kill()
            collector.wait()
            for target in (folder, f"{folder}data"):
                reply = self.send(target, port, cookie=cookie)
                self.assertEqual((reply.status, reply.headers.get("refresh")), (503, "5"))
                self.assertIn(f"{self.temporary.name}/collector", reply.body.decode())
            collector = guest.start_collector(listen, database, self.host.environment)
            self.assertEqual(self.send(folder, port, cookie=cookie).status, 200)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
            collector.kill()
            collector.wait()
        server, address = self.start("--collector", listen, stderr=subprocess.PIPE)
        error = server.communicate(timeout=60)[1]
        self.assertEqual((server.returncode, address), (1, ""))
        self.assertIn(listen.removeprefix("unix:"), error)

    def test_it_ends_with_ctrl_c_and_says_where_it_cannot_listen(self):
        server, address = self.start("--port", str(self.port), stderr=subprocess.PIPE)
        error = server.communicate(timeout=60)[1]
        self.assertEqual((server.returncode, address), (1, ""))
        self.assertIn(f"lull web: cannot listen on 127.0.0.1:{self.port}: Address already in use",
                      error)
        for number in (signal.SIGINT, signal.SIGTERM):
            server, address = self.start()
            self.assertTrue(address)
            server.send_signal(number)
            self.assertEqual(server.wait(60), 0)
            server.stdout.close()
        with self.assertRaises(OSError):  # of no other address of this host
            socket.create_connection(("127.0.0.2", self.port), timeout=5)


if __name__ == "__main__":
    unittest.main()

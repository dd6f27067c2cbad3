#!/usr/bin/env python3
"""A collector with a port on loopback, and what another user of the host can do there."""

import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import unittest

import guest
from guest import wait_until

LULLD = os.path.join(os.path.dirname(os.path.dirname(guest.LULL)), "daemon", "collector",
                     "lulld")
if not os.path.exists(LULLD):
    LULLD = os.path.join(os.path.dirname(guest.LULL), "lulld")
NOBODY = 65534


def call(address, method, metadata=()):
    """One gRPC call without a message, byte by byte, as a stranger would make it. Returns once
    the server has answered or hung up."""
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

    def text(value):
        return bytes([len(value)]) + value.encode()

    headers = [(":method", "POST"), (":scheme", "http"), (":path", method),
               (":authority", "lull"), ("content-type", "application/grpc"),
               ("te", "trailers"), *metadata]
    block = b"".join(b"\0" + text(name) + text(value) for name, value in headers)
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as connection:
        connection.settimeout(10)
        connection.connect(address)
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") +
                           frame(1, 4, 1, block) + frame(0, 1, 1, b"\0\0\0\0\0"))
        answer = b""
        while True:
            part = connection.recv(4096)
            answer += part
            at = 0
            while len(answer) - at >= 9:
                length = int.from_bytes(answer[at:at + 3], "big")
                kind, flags = answer[at + 3], answer[at + 4]
                if kind == 1 and flags & 1:  # headers that end the stream: the status
                    return
                at += 9 + length
            if not part:
                return


class Port(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)
        folder = tempfile.TemporaryDirectory(prefix="lull-trust-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.database = os.path.join(self.folder, "state", "lull.db")
        self.tokens = f"{self.database}.tokens"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = probe.getsockname()
        self.target = "127.0.0.1:%d" % self.address[1]
        self.errors = os.path.join(self.folder, "errors")

    def start(self, *options, listen=None):
        with open(self.errors, "w") as errors:
            self.lulld = subprocess.Popen(
                [LULLD, "--listen", listen or self.target, "--database", self.database, *options],
                env=self.host.environment, stderr=errors)
        self.addCleanup(self.stop, self.lulld)

    def start_port(self, *options):
        self.start(*options)
        wait_until(lambda: self.lulld.poll() is not None or self.mine("jobs").status == 0)
        self.assertIsNone(self.lulld.poll(), self.said())

    def stop(self, lulld):
        lulld.kill()
        lulld.wait()

    def said(self):
        with open(self.errors) as file:
            return file.read()

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return path

    def line(self, right):
        """A token file with this right alone."""
        with open(self.tokens) as file:
            (line,) = [line for line in file if line.startswith(right + " ")]
        return self.file(right, line)

    def lull(self, *arguments, token=None, command=(), **options):
        flags = ["--collector", self.target] + (["--token-file", token] if token else [])
        tail = ["--", *command] if command else []
        return guest.execute([guest.LULL, *arguments, *flags, *tail], self.host.environment,
                             **options)

    def mine(self, *arguments, **options):
        return self.lull(*arguments, token=self.tokens, **options)

    def test_makes_tokens_for_its_owner_and_says_where(self):
        self.start_port()
        self.assertIn(f"lulld: listening on {self.target}", self.said())
        self.assertIn(self.tokens, self.said())
        self.assertEqual(stat.S_IMODE(os.stat(self.tokens).st_mode), 0o600)
        with open(self.tokens) as file:
            secrets = [line.split()[1] for line in file if not line.startswith("#")]
        with open(f"/proc/{self.lulld.pid}/cmdline") as file:
            arguments = file.read()
        for secret in secrets:
            self.assertNotIn(secret, arguments + self.said())
        # They stay when it is started again.
        with open(self.tokens) as file:
            before = file.read()
        self.stop(self.lulld)
        self.start_port()
        with open(self.tokens) as file:
            self.assertEqual(file.read(), before)

    def test_each_token_gives_its_own_right(self):
        self.start_port()
        job = ["python3", "-c", "pass"]
        recorded = self.lull("run", "--name", "mine", token=self.line("write"), command=job)
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertIn("no summary", recorded.stderr)
        self.assertIn("wants a read token", recorded.stderr)
        for right, verbs in {"write": (), "read": ("jobs", "report"), "control": ("arm",)}.items():
            for verb in ("jobs", "report", "arm"):
                done = self.lull(verb, token=self.line(right))
                with self.subTest(right=right, verb=verb):
                    if verb not in verbs:
                        self.assertIn("has none; ask its owner", done.stderr)
                    elif verb == "arm":
                        self.assertIn("has ended", done.stderr)
                    else:
                        self.assertEqual(done.status, 0, done.stderr)
        refused = self.lull("run", "--must-record", token=self.line("read"), command=job)
        self.assertEqual(refused.status, 125)
        self.assertIn("no write token", refused.stderr)
        # Under another name a token gives nothing.
        with open(self.line("read")) as file:
            secret = file.read().split()[1]
        for right, verb in (("write", "run"), ("control", "arm")):
            arguments = ["run", "--must-record"] if verb == "run" else [verb]
            done = self.lull(*arguments, token=self.file("claimed", f"{right} {secret}\n"),
                             command=job if verb == "run" else ())
            self.assertEqual(done.status, 125 if verb == "run" else 1)
            self.assertIn(f"refuses the token; ask its owner for the right {right}", done.stderr)
        self.assertEqual(self.mine("run", command=job).status, 0)

    def test_finds_the_token_by_the_environment(self):
        self.start_port()
        environment = {**self.host.environment, "LULL_COLLECTOR": self.target,
                       "LULL_TOKEN_FILE": self.tokens}
        self.assertEqual(guest.execute([guest.LULL, "jobs"], environment).status, 0)
        doctor = guest.execute([guest.LULL, "doctor"], environment)
        self.assertRegex(doctor.stdout, r"\$LULL_COLLECTOR +ok +lulld .* answers at " + self.target)
        del environment["LULL_TOKEN_FILE"]
        self.assertIn("wants a token", guest.execute([guest.LULL, "doctor"], environment).stdout)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become another user")
    def test_another_user_can_neither_ask_nor_arm_nor_end_it(self):
        self.start_port()
        self.assertEqual(self.mine("run", "--name", "mine", command=["true"]).status, 0)
        os.chmod(self.folder, 0o755)
        home = os.path.join(self.folder, "other")
        os.mkdir(home)
        os.chown(home, NOBODY, NOBODY)
        program = shutil.copy(guest.LULL, os.path.join(self.folder, "lull"))
        os.chmod(program, 0o755)
        stranger = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
        environment = {"PATH": os.environ["PATH"], "HOME": home, "LULL_RUNTIME_DIR": f"{home}/run"}

        def other(*arguments):
            return guest.execute([program, *arguments, "--collector", self.target], environment,
                                 **stranger)
        for verb in (["jobs"], ["report"], ["syncs", "--json"], ["arm"], ["disarm"]):
            with self.subTest(verb=verb):
                done = other(*verb)
                self.assertEqual(done.status, 1, done.stdout)
                self.assertIn("wants a token", done.stderr)
                self.assertNotIn("mine", done.stdout + done.stderr)
                taken = other(*verb, "--token-file", self.tokens)
                self.assertIn("Permission denied", taken.stderr)
                guessed = os.path.join(home, "guess")
                with open(guessed, "w") as file:
                    file.write("f" * 64)
                os.chown(guessed, NOBODY, NOBODY)
                os.chmod(guessed, 0o600)
                self.assertIn("refuses the token", other(*verb, "--token-file", guessed).stderr)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                for _ in range(3):
                    call(self.address, "/lull.v1.Control/Shutdown")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.still_there()

    def test_nobody_ends_it_over_the_port(self):
        self.start_port()
        for right in ("write", "read", "control"):
            with open(self.line(right)) as file:
                secret = file.read().split()[1]
            call(self.address, "/lull.v1.Control/Shutdown",
                 [("authorization", f"Bearer {secret}")])
        self.still_there()

    def still_there(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.lulld.wait(timeout=1)
        self.assertEqual(self.mine("jobs").status, 0)

    def test_the_same_call_ends_it_over_its_socket(self):
        path = os.path.join(self.folder, "run", "c.sock")
        self.start(listen=f"unix:{path}")
        wait_until(lambda: os.path.exists(path))
        call(path, "/lull.v1.Control/Shutdown")
        self.assertEqual(self.lulld.wait(timeout=30), 0)

    def test_stays_on_this_host_without_tls(self):
        self.start(listen="0.0.0.0:%d" % self.address[1])
        self.assertEqual(self.lulld.wait(timeout=30), 2)
        self.assertIn("--insecure-plain-tcp", self.said())
        self.assertFalse(os.path.exists(self.tokens))
        self.target = "0.0.0.0:%d" % self.address[1]
        self.start("--insecure-plain-tcp")
        wait_until(lambda: self.mine("jobs", "--insecure-plain-tcp").status == 0)
        self.assertIn("can be read by whoever sees the network's traffic", self.said())
        done = self.mine("jobs")
        self.assertEqual(done.status, 2)
        self.assertIn("is not on this host", done.stderr)
        self.assertIn("--tls-ca", done.stderr)
        self.lulld.send_signal(signal.SIGTERM)
        self.assertEqual(self.lulld.wait(timeout=30), 0)


if __name__ == "__main__":
    unittest.main()

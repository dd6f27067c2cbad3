"""`lull run` on a terminal: Ctrl-C, Ctrl-Z and `fg` behave as without it."""

import os
import pty
import re
import select
import signal
import socket
import sys
import time
import unittest

import lull_case
from lull_case import ARGUMENTS, LullCase

PYTHON = sys.executable

COUNT_INTERRUPTS = (
    "import signal, time\n"
    "count = 0\n"
    "def note(number, frame):\n"
    "    global count\n"
    "    count += 1\n"
    "signal.signal(signal.SIGINT, note)\n"
    "print('rea' + 'dy', flush=True)\n"
    "end = time.monotonic() + 1.5\n"
    "while time.monotonic() < end: time.sleep(0.05)\n"
    "print('interrupts', count, flush=True)\n")

REPORT_CONTINUE = (
    "import os, signal, sys\n"
    # Not print(): the first one may have been stopped in the middle of it.
    "signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'conti' + b'nued\\n'))\n"
    "print('rea' + 'dy', flush=True)\n"
    "print('got', sys.stdin.readline().strip(), flush=True)\n"
    "sys.exit(5)\n")


class Terminal(LullCase):
    """An interactive shell on a pseudo terminal."""

    def setUp(self):
        super().setUp()
        self.start_collector()
        self.environment.update(PS1="PROMPT> ", TERM="dumb", LULL=ARGUMENTS.lull)
        self.output = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], self.environment)
        self.expect("PROMPT> ")

    def tearDown(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)
        super().tearDown()

    def expect(self, pattern, seconds=30):
        """Reads until `pattern` matches, and forgets what came up to there."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.output)
            if match:
                self.output = self.output[match.end():]
                return match
            if time.monotonic() > end:
                self.fail(f"no {pattern!r} in {self.output!r}")
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.output += os.read(self.terminal, 4096).decode(errors="replace")

    def wait_for_foreground(self, group, seconds=30):
        end = time.monotonic() + seconds
        while os.tcgetpgrp(self.terminal) != group:
            self.assertLess(time.monotonic(), end, "it did not get the terminal")
            time.sleep(0.01)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def python(self, code, prefix=""):
        path = os.path.join(self.folder, "job.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        self.type(f"{prefix} $LULL run --quiet -- {PYTHON} {path}\n")

    def status(self):
        self.type("echo status=$?\n")
        return int(self.expect(r"status=(\d+)")[1])

    def test_control_c_reaches_the_job_once(self):
        self.python(COUNT_INTERRUPTS)
        self.expect("ready")
        self.type("\x03")
        self.assertEqual(self.expect(r"interrupts (\d+)")[1], "1")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 0)

    @unittest.skipUnless(lull_case.containers_work(), "no PID namespace to be had here")
    def test_control_c_reaches_the_job_once_in_a_container_too(self):
        self.python(COUNT_INTERRUPTS, prefix=" ".join(lull_case.IN_CONTAINER))
        self.expect("ready")
        self.type("\x03")
        self.assertEqual(self.expect(r"interrupts (\d+)")[1], "1")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 0)

    def test_control_c_ends_a_job_that_does_not_catch_it(self):
        self.type("$LULL run --quiet -- sleep 60\n")
        time.sleep(1)
        self.type("\x03")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 130)

    def test_control_z_stops_and_fg_goes_on(self):
        self.python(REPORT_CONTINUE)
        self.expect("ready")
        self.type("\x1a")
        self.expect("Stopped")
        self.expect("PROMPT> ")
        self.type("fg\n")
        self.expect("continued")
        self.type("hello\n")
        self.expect("got hello")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 5)

    def test_control_z_before_the_job_has_started_gives_the_terminal_back(self):
        with socket.create_server(("127.0.0.1", 0)) as collector:
            self.type(f"LULL_COLLECTOR=127.0.0.1:{collector.getsockname()[1]} "
                      "$LULL run --quiet -- sh -c 'echo sta''rted; exit 8'\n")
            with collector.accept()[0]:  # lull waits for an answer, and the job for lull
                self.type("\x1a")
                self.expect("Stopped")
                self.expect("PROMPT> ")
                self.type("fg\n")
                self.expect("started")
            collector.close()
            self.expect("PROMPT> ")
            self.assertEqual(self.status(), 8)

    def test_a_job_that_stops_itself_gives_the_terminal_back(self):
        self.python("import os, signal, sys\n"
                    "os.kill(os.getpid(), signal.SIGSTOP)\n"
                    "print('aft' + 'er', flush=True)\n"
                    "sys.exit(6)\n")
        self.expect("Stopped")
        self.expect("PROMPT> ")
        self.type("fg\n")
        self.expect("after")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 6)

    def test_a_background_job_that_reads_the_terminal_is_stopped(self):
        self.type("$LULL run --quiet -- head -1 &\n")
        self.expect("PROMPT> ")
        time.sleep(1.5)
        self.type("\n")
        self.expect("Stopped")
        self.type("fg\n")
        time.sleep(0.3)
        self.type("line\n")
        self.expect("line\r\nline\r\n")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 0)

    def test_kill_of_the_shells_job_ends_it(self):
        self.type("$LULL run --quiet -- sleep 60 &\n")
        self.expect("PROMPT> ")
        time.sleep(1)
        self.type("kill %1; wait %1\n")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 143)

    def test_a_shell_as_the_job_has_job_control(self):
        self.type("PS1='INNER> ' $LULL run --quiet -- bash --norc --noprofile -i\n")
        self.expect("INNER> ")
        self.type("sh -c 'echo sta''rted; exec sleep 60'\n")
        self.expect("started")
        job = os.tcgetpgrp(self.terminal)
        self.type("\x1a")
        self.expect("Stopped")
        self.expect("INNER> ")
        self.type("fg\n")
        self.wait_for_foreground(job)
        self.type("\x03")
        self.expect("INNER> ")
        self.type("exit 4\n")
        self.expect("PROMPT> ")
        self.assertEqual(self.status(), 4)

    def test_the_summary_is_coloured_unless_no_color_is_set(self):
        self.type("TERM=xterm $LULL run -- true\n")
        self.expect("\x1b\\[1mresnet")
        self.expect("PROMPT> ")
        for words in ("NO_COLOR=1 TERM=xterm $LULL run", "TERM=dumb $LULL run",
                      "TERM=xterm $LULL run --color=never"):
            self.type(words + " -- true\n")
            self.expect("lull: resnet")
            self.expect("PROMPT> ")


if __name__ == "__main__":
    lull_case.main()

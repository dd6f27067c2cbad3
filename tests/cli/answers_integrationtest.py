"""Answers on a terminal: colour, width and pager as git has them. In a pipe: none."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import lull_case
from lull_case import ARGUMENTS, LullCase

BOLD = "\x1b[1m"


class Answers(LullCase):
    def setUp(self):
        super().setUp()
        for name in ("PAGER", "LULL_PAGER", "LESS", "COLUMNS", "LINES"):
            self.environment.pop(name, None)
        # Never less itself, which would wait for somebody to press a key.
        self.environment.update(TERM="xterm", LULL_PAGER="cat")
        self.start_collector()

    def on_terminal(self, *arguments, rows=200, columns=200, **variables):
        """(status, what a terminal of this size is given)"""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        environment = {name: value for name, value in {**self.environment, **variables}.items()
                       if value is not None}
        with subprocess.Popen([ARGUMENTS.lull, *arguments], stdin=theirs, stdout=theirs,
                              stderr=theirs, env=environment) as process:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # EIO: the last one has closed it
                    break
                if not part:
                    break
                shown += part
        os.close(ours)
        return process.returncode, shown.decode().replace("\r\n", "\n")

    def test_colour_is_for_a_terminal_alone(self):
        plain = self.lull("report").stdout
        self.assertNotIn("\x1b", plain)
        _, shown = self.on_terminal("report")
        self.assertTrue(shown.startswith(BOLD), shown[:80])
        self.assertEqual(shown.replace(BOLD, "").replace("\x1b[33m", "").replace("\x1b[0m", ""),
                         plain)
        for arguments, variables in ((["report"], {"NO_COLOR": "1"}), (["report"], {"TERM": "dumb"}), (["report"], {"TERM": None}),
                                     (["report", "--color=never"], {}),
                                     (["report", "--json"], {})):
            with self.subTest(arguments=arguments, **variables):
                self.assertNotIn("\x1b", self.on_terminal(*arguments, **variables)[1])
        self.assertIn(BOLD, self.on_terminal("report", NO_COLOR="")[1])
        self.assertIn(BOLD, self.lull("report", "--color=always").stdout)
        self.assertNotIn("\x1b", self.lull("report", "--color=always", "--json").stdout)
        done = self.lull("report", "--color", "often")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--color", done.stderr)

    def test_a_long_answer_goes_through_the_pager(self):
        for variables in ({"LULL_PAGER": "sed s/^/:/", "PAGER": "false"}, {"PAGER": "sed s/^/:/", "LULL_PAGER": None}):
            with self.subTest(**variables):
                status, shown = self.on_terminal("report", "--color=never", rows=10, **variables)
                self.assertEqual(status, 0)
                self.assertEqual(shown, "".join(
                    ":" + line for line in self.lull("report").stdout.splitlines(True)))

    def test_a_short_answer_needs_no_pager(self):
        plain = self.lull("report").stdout
        pager = {"LULL_PAGER": "sed s/^/:/"}
        for arguments, options in ((["report"], {}), (["report", "--no-pager"], {"rows": 10})):
            with self.subTest(arguments=arguments):
                shown = self.on_terminal(*arguments, "--color=never", **options, **pager)[1]
                self.assertEqual(shown, plain)
        for none in ("", "cat", "no-such-pager 2>/dev/null"):
            with self.subTest(pager=none):
                shown = self.on_terminal("report", "--color=never", rows=10, LULL_PAGER=none)[1]
                self.assertEqual(shown, plain)
        self.assertEqual(self.lull("report", env={**self.environment, **pager}).stdout, plain)

    def test_a_pager_that_is_left_early_is_no_failure(self):
        status, shown = self.on_terminal("report", "--color=never", rows=10,
                                         LULL_PAGER="head -n 1")
        self.assertEqual((status, shown), (0, self.lull("report").stdout.splitlines(True)[0]))

    def test_less_is_told_what_git_tells_it(self):
        fake = os.path.join(self.folder, "less")
        with open(fake, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ncat > /dev/null; echo \"LESS=$LESS\"\n")
        os.chmod(fake, 0o755)
        path = {"PATH": f"{self.folder}:{os.environ['PATH']}", "LULL_PAGER": None}
        self.assertEqual(self.on_terminal("report", rows=10, **path)[1], "LESS=FRX\n")
        self.assertEqual(self.on_terminal("report", rows=10, LESS="R", **path)[1], "LESS=R\n")

    def test_advice_is_as_wide_as_the_terminal_and_100_columns_at_most(self):
        def widest(**options):
            shown = self.on_terminal("report", "--color=never", **options)[1]
            advice = shown.split("What to change first\n")[1].split("\n\n")[0]
            return max(map(len, advice.splitlines()))
        self.assertLessEqual(widest(columns=60), 60)
        self.assertLessEqual(widest(columns=200, COLUMNS="60"), 60)
        self.assertGreater(widest(columns=200), 80)
        self.assertLessEqual(widest(columns=200), 100)


if __name__ == "__main__":
    lull_case.main()

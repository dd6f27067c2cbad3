#!/usr/bin/env python3
"""`lull top` in tmux, on a job that runs: what the screen shows, keys, sizes, terminals that
nobody describes, and what it leaves behind."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE]
import guest
from guest import wait_until

PUPPETS = os.path.join(ROOT, "tests", "puppets")
STEP = re.compile(r"^ *pid \d+ +\d", re.MULTILINE)


class Screen:
    """A command in a tmux of its own."""

    def __init__(self, environment, *command, columns=80, rows=24):
        self.folder = tempfile.mkdtemp(prefix="lull-tmux-")
        self.environment = {**environment, "TMUX_TMPDIR": self.folder}
        shown = " ".join(map(shlex.quote, command))
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"{shown} 2>{self.folder}/stderr; echo ended $?; sleep 600")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-L", "lull", *arguments], env=self.environment,
                              stdout=subprocess.PIPE, check=True).stdout.decode()

    def text(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def shows(self, pattern):
        """The text, once it has `pattern`."""
        def look():
            text = self.text()
            return text if re.search(pattern, text, re.MULTILINE) else None
        try:
            return wait_until(look)
        except AssertionError:
            raise AssertionError(f"no {pattern!r} in:\n{self.text()}") from None

    def close(self):
        subprocess.run(["tmux", "-L", "lull", "kill-server"], env=self.environment,
                       stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


class Top(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.environment = {**cls.host.environment, "LANG": "C.UTF-8", "NO_COLOR": ""}
        # Some 30 ms a step, for longer than the test takes.
        cls.job = subprocess.Popen(
            [guest.LULL, "run", "--quiet", "--name", "live", "--step-range", "step", "--",
             sys.executable, os.path.join(PUPPETS, "stepping.py"), "20000"],
            env={**cls.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
                 "LULL_SIM_CONFIG": "kernel_us=300"}, stdin=subprocess.DEVNULL)
        wait_until(lambda: STEP.search(cls.once().stdout))

    @classmethod
    def tearDownClass(cls):
        cls.job.terminate()
        cls.job.wait()
        cls.host.close()

    @classmethod
    def once(cls, *options):
        return guest.execute([guest.LULL, "top", "live", "--once", *options],
                             cls.host.environment)

    def screen(self, *options, environment=None, **size):
        screen = Screen({**self.environment, **(environment or {})}, guest.LULL, "top", "live",
                        "--every", "500ms", *options, **size)
        self.addCleanup(screen.close)
        return screen

    def test_a_running_job(self):
        screen = self.screen()
        text = screen.shows(STEP.pattern)
        self.assertRegex(text, r"(?m)^\[last 60\.0 s\] live \(")
        self.assertRegex(text, r"(?m)^\[1 gaps\] .* \? help$")
        before = re.search(r"stepping.py 20000, ([\d.]+) s", text)[1]
        wait_until(lambda: re.search(r"stepping.py 20000, ([\d.]+) s|$",
                                     screen.text())[1] not in (before, None))
        screen.keys("3")
        screen.shows(r"trainer\.py:\d+")
        screen.shows(r"\[3 host\]")
        screen.keys("s")
        screen.shows("by slowest step")
        screen.keys("+")
        screen.shows(r"\[last 5 min")
        screen.keys("p")
        screen.shows(r"paused\]")
        screen.keys("?")
        screen.shows("keys and columns")
        screen.keys("x")
        screen.shows(r"\[3 host\]")
        screen.keys("q")
        screen.shows("^ended 0$")
        self.assertNotIn("gaps]", screen.text(), "the screen is as it was before")

    def test_other_sizes(self):
        screen = self.screen(columns=60, rows=12)
        text = screen.shows(STEP.pattern)
        self.assertTrue(all(len(line) <= 60 for line in text.split("\n")))
        screen.tmux("resize-window", "-x", "120", "-y", "40")
        wait_until(lambda: any(len(line) > 80 for line in screen.text().split("\n")))
        screen.tmux("resize-window", "-x", "20", "-y", "3")
        wait_until(lambda: len(screen.text().rstrip("\n").split("\n")) <= 3)
        screen.keys("q")
        screen.shows("^ended 0$")

    def test_a_terminal_that_the_image_does_not_describe(self):
        nowhere = {"TERMINFO": "/nonexistent", "TERMINFO_DIRS": "/nonexistent"}
        with tempfile.TemporaryDirectory() as empty:
            # tmux itself needs one.
            screen = Screen(self.environment, "env", "TERM=nobodys-terminal", guest.LULL, "top",
                            "live")
            self.addCleanup(screen.close)
            screen.shows("^ended 2$")
            with open(os.path.join(screen.folder, "stderr"), encoding="utf-8") as file:
                self.assertIn("nobodys-terminal", file.read())
            built_in = Screen(self.environment, "env", "HOME=" + empty, "TERM=tmux-256color",
                              *(f"{k}={v}" for k, v in nowhere.items()), guest.LULL, "top",
                              "live")
            self.addCleanup(built_in.close)
            built_in.shows(STEP.pattern)
            built_in.keys("q")
            built_in.shows("^ended 0$")

    def test_without_a_terminal(self):
        done = guest.execute([guest.LULL, "top", "live"], self.host.environment)
        self.assertEqual((done.status, done.stdout), (2, ""))
        self.assertIn("--once", done.stderr)
        missing = guest.execute([guest.LULL, "top", "nosuch", "--once"], self.host.environment)
        self.assertEqual(missing.status, 1)
        self.assertIn("nosuch", missing.stderr)
        wrong = guest.execute([guest.LULL, "top", "--last", "0s"], self.host.environment)
        self.assertEqual(wrong.status, 2)

    def test_tells_what_the_other_answers_tell(self):
        job = [guest.LULL, "run", "--quiet", "--name", "over", "--step-range", "step", "--gpu",
               "continuous", "--", sys.executable, os.path.join(PUPPETS, "stepping.py"), "60"]
        done = guest.execute(job, {**self.host.environment,
                                   "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
                                   "LULL_SIM_CONFIG": "kernel_us=30"})
        self.assertEqual(done.status, 0, done.stderr)
        shown = guest.execute([guest.LULL, "top", "over", "--once", "--last", "all"],
                              self.host.environment).stdout
        report = json.loads(guest.execute(
            [guest.LULL, "report", "over", "--json", "--phase", "all"],
            self.host.environment).stdout)
        gpu = report["gpu"]
        busy = 100 * gpu["busy_ms"] / gpu["traced_ms"]
        told = float(re.search(r"GPU busy ([\d.]+) %", shown)[1])
        self.assertAlmostEqual(told, busy, delta=0.06)
        steps = json.loads(guest.execute(
            [guest.LULL, "steps", "over", "--json", "--phase", "all", "--top", "0"],
            self.host.environment).stdout)["steps"]
        known = sorted(step["duration_ms"] for step in steps if step["duration_ms"])
        (step,) = re.findall(r"^ *pid \d+ +([\d.]+) (us|ms|s) ", shown, re.MULTILINE)
        scale = {"us": 1e-3, "ms": 1, "s": 1e3}[step[1]]
        self.assertAlmostEqual(float(step[0]) * scale, known[(len(known) - 1) // 2],
                               delta=0.006 * known[(len(known) - 1) // 2])

    def test_costs_little_of_a_processor(self):
        screen = self.screen()
        screen.shows(STEP.pattern)
        pane = int(screen.tmux("display-message", "-p", "#{pane_pid}"))
        (top,) = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and
                  stat_of(pid)[1:2] == [str(pane)]]
        before = cpu_seconds(top)
        subprocess.run(["sleep", "6"], check=True)
        # 2 % are meant; the questions of this test come four times as often as by default.
        self.assertLess(cpu_seconds(top) - before, 0.05 * 6)
        screen.keys("q")


def stat_of(pid):
    """Of /proc/PID/stat: state, parent and so on; [] of one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_seconds(pid):
    stat = stat_of(pid)
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    unittest.main()

"""Runs a command with and without `lull run` and compares what it did.

What must be equal is the standard output, the standard error and the exit status
(128 + n for a signal, as a shell says it). Where a command's output differs from
run to run by itself, a test passes a `normalise` function that takes out just
that, and says why.
"""

import glob
import os
import signal
import sqlite3
import subprocess
import tempfile
import time

LULL = os.environ.get("LULL_BIN", "lull")
LULLD = os.path.join(os.path.dirname(os.path.dirname(LULL)), "daemon", "collector", "lulld")
if not os.path.exists(LULLD):  # where both are installed
    LULLD = os.path.join(os.path.dirname(LULL), "lulld")
GUESTS = os.environ.get("LULL_GUESTS", "")  # folder of the compiled guests

# lull and its collector with the image's libc, which can be lied to about the time; the
# product's own libc asks the kernel.
LULL_WITH_SHARED_LIBC = os.path.join(GUESTS, "with_shared_libc", "cli", "lull")


def with_settable_clock(file):
    """Variables under which LULL_WITH_SHARED_LIBC takes the seconds in `file` for an
    offset of the wall clock."""
    return {"LD_PRELOAD": os.path.join(GUESTS, "libclock_of_file.so"), "CLOCK_OF_FILE": file}


class Outcome:
    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr


def lull_environment(state):
    """An environment in which lull keeps everything under the folder `state`."""
    environment = dict(os.environ)
    environment["LULL_RUNTIME_DIR"] = os.path.join(state, "run")
    environment["XDG_DATA_HOME"] = os.path.join(state, "data")
    return environment


def collectors(state):
    """The private collectors that keep their database under `state`."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
            if (os.path.basename(command[0]) == b"lulld" and
                    any(state.encode() in argument for argument in command[1:])):
                yield int(entry)
        except (OSError, ValueError):
            continue  # not a process, or gone by now


def stop_collector(state):
    """Ends them; they would end by themselves once idle, but not before the folder is
    removed."""
    for collector in collectors(state):
        try:
            os.kill(collector, signal.SIGTERM)
            while os.path.exists(f"/proc/{collector}/exe"):
                time.sleep(0.01)
        except OSError:
            continue  # gone by now


def wait_until(condition, seconds=30):
    """The first true value of condition()."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def execute(command, environment, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", 180)
    if "input" in options:
        del options["stdin"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Outcome(status, done.stdout.decode(errors="replace"),
                   done.stderr.decode(errors="replace"))


def start_collector(listen, database, environment):
    """A collector that answers there, for who is to kill it."""
    collector = subprocess.Popen([LULLD, "--listen", listen, "--database", database],
                                 env=environment, stderr=subprocess.DEVNULL)
    wait_until(lambda: execute([LULL, "jobs", "--collector", listen], environment).status == 0)
    return collector


def fields_of(message):
    """{number: value} of the fields of a protobuf message."""
    at, fields = 0, {}

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            fields[number] = varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        fields[number] = message[at:at + size]
        at += size
    return fields


class Host:
    """A folder for lull's state, and the two ways of running a command."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="lull-guest-")
        self.environment = lull_environment(self._folder.name)

    def close(self):
        stop_collector(self._folder.name)
        self._folder.cleanup()

    def start_ns(self, name):
        """CLOCK_MONOTONIC at the start of the job, from which answers count; no report
        shows it."""
        (path,) = glob.glob(os.path.join(self.environment["XDG_DATA_HOME"], "**", "*.db"),
                            recursive=True)
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            jobs = [fields_of(blob) for blob, in
                    database.execute("SELECT job_info FROM jobs ORDER BY id")]
        return next(job[6] for job in jobs if job.get(2) == name.encode())  # of JobInfo

    def alone(self, command, env=None, **options):
        return execute(command, {**self.environment, **(env or {})}, **options)

    def with_lull(self, command, env=None, **options):
        return execute([LULL, "run", "--quiet", "--", *command],
                       {**self.environment, **(env or {})}, **options)

    def check_unnoticed(self, test, command, normalise=lambda text: text, status=None,
                        **options):
        """Runs `command` both ways and fails `test` if anything differs."""
        alone = self.alone(command, **options)
        guest = self.with_lull(command, **options)
        if status is not None:
            test.assertEqual(alone.status, status, f"without lull: {alone.stderr}")
        test.assertEqual(guest.status, alone.status, f"with lull: {guest.stderr}")
        test.assertEqual(normalise(guest.stdout), normalise(alone.stdout))
        test.assertEqual(normalise(guest.stderr), normalise(alone.stderr))
        return guest

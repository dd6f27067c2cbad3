"""What may surround a job: each makes one thing go wrong, and says what lull may say of it.

A surrounding is asked, in this order: refused() whether this machine can make it;
prepare() before anything runs; guest_command() and whole_command() to wrap what is run;
then during() runs beside the job, and relieve() puts the world right again before the
report is asked for. `may_lack` is what a report, or lull at the end of the job, may say to
be missing, as regular expressions; where it is empty, the report must be complete.
"""

import contextlib
import glob
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import guest

HERE = os.path.dirname(os.path.abspath(__file__))
UNRECORDED = r"the job runs without being recorded"
WAITS = r"the job runs; what is recorded waits in "
LATER = r"the relay goes on trying for a minute"
LOST = r"LOST [\d,]+ of [\d,]+ events"


class World:
    """Where one job runs: folders of its own, and their environment."""

    def __init__(self, folder):
        self.folder = folder
        self.runtime = os.path.join(folder, "run")
        self.data = os.path.join(folder, "data")
        self.environment = guest.lull_environment(folder)
        self.environment["LULL_RUNTIME_DIR"] = self.runtime
        self.environment["XDG_DATA_HOME"] = self.data
        self.undo = contextlib.ExitStack()

    def collectors(self):
        return processes(lambda command: os.path.basename(command[0]) == b"lulld" and
                         any(self.folder.encode() in part for part in command))

    def relays(self):
        found = processes(lambda command: b"relay-worker" in command)
        return [pid for pid in found if self.folder.encode() in environ(pid)]


def processes(wanted):
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
        except OSError:
            continue
        if entry.isdigit() and command[0] and wanted(command):
            found.append(int(entry))
    return found


def kill_all(pids, number=signal.SIGKILL):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def environ(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def collector_program():
    """As lull finds it: beside itself, or in the build tree."""
    folder = os.path.dirname(os.path.realpath(shutil.which(guest.LULL)))
    for path in (os.path.join(folder, "lulld"),
                 os.path.join(folder, "../daemon/collector/lulld")):
        if os.path.exists(path):
            return path
    raise FileNotFoundError("lulld")


def can_unshare(*flags):
    done = subprocess.run(["unshare", *flags, "true"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    return "" if done.returncode == 0 else f"unshare: {done.stderr.decode().strip()}"


def shell(script, command):
    return ["/bin/sh", "-c", f'{script} && exec "$@"', "sh", *command]


class Surrounding:
    may_lack = ()
    seconds = 0.0  # that the job may take longer than alone, beside the two of all

    def refused(self):
        """Why this machine cannot make it, or ""."""
        return ""

    def prepare(self, world):
        pass

    def guest_command(self, world, command, program):
        return command

    def whole_command(self, world, command):
        return command

    def during(self, world, job):
        pass

    def relieve(self, world):
        pass


class Quiet(Surrounding):
    pass


class FullDisk(Surrounding):
    """The folder of database and spool lies on a disk of its own, which is full, or
    becomes so in the middle."""
    may_lack = (UNRECORDED, WAITS, LATER, LOST, r"No space left", r"full")

    def __init__(self, midway):
        self.midway = midway

    def refused(self):
        return "" if os.geteuid() == 0 else "only root can mount a disk of its own"

    def prepare(self, world):
        os.makedirs(world.data, 0o700, exist_ok=True)
        size = "size=24m" if self.midway else "size=1m"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"{size},mode=700", "none",
                               world.data], stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Refused(f"mount: {done.stderr.decode().strip()}")
        world.undo.callback(subprocess.run, ["umount", "-l", world.data], check=False)
        if not self.midway:
            self.fill(world)

    def fill(self, world):
        with open(os.path.join(world.data, "filler"), "wb", buffering=0) as file:
            block = bytes(65536)
            with contextlib.suppress(OSError):
                while True:
                    file.write(block)
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"0")

    def during(self, world, job):
        if self.midway:
            time.sleep(0.7)
            self.fill(world)

    def relieve(self, world):
        os.unlink(os.path.join(world.data, "filler"))
        subprocess.run(["mount", "-o", "remount,size=64m", world.data], check=True)


class RuntimeRemoved(Surrounding):
    """As at a logout."""
    may_lack = (r"no new process could be recorded",)

    def during(self, world, job):
        time.sleep(0.7)
        shutil.rmtree(world.runtime, ignore_errors=True)


class Descriptors(Surrounding):
    """RLIMIT_NOFILE, of the guest alone or of lull as well."""

    def __init__(self, whole):
        self.whole = whole
        if whole:
            self.may_lack = (UNRECORDED, WAITS, LATER, LOST, r"[Tt]oo many open files",
                             r"could not be recorded at all")

    def guest_command(self, world, command, program):
        # Also where lull has 20: PyTorch's loader takes 19 alone, on a busy machine more.
        return shell(f"ulimit -n {program.descriptors}", command)

    def whole_command(self, world, command):
        return shell("ulimit -S -n 20", command) if self.whole else command


class AddressSpace(Surrounding):
    """RLIMIT_AS, of what the guest needs and little more."""
    may_lack = (LOST, r"no memory for recording", r"no process reported")

    def guest_command(self, world, command, program):
        return shell(f"ulimit -v {program.address_space >> 10}", command)


class Denied(Surrounding):
    """A filter answers one system call with EPERM, as container runtimes do."""
    may_lack = (r"could not be recorded at all", r"seccomp")

    def __init__(self, call):
        self.call = call

    def guest_command(self, world, command, program):
        return [sys.executable, os.path.join(HERE, "denies.py"), self.call, *command]


class NoProc(Surrounding):
    """No /proc, for the guest alone or for lull as well."""

    def __init__(self, whole):
        self.whole = whole
        self.may_lack = ((UNRECORDED, WAITS, LATER, LOST, r"no process reported",
                          r"/proc") if whole else (LOST, r"no process reported", r"/proc"))

    def refused(self):
        return can_unshare("-m")

    def wrap(self, command):
        return ["unshare", "-m", *shell("mount -t tmpfs none /proc", command)]

    def guest_command(self, world, command, program):
        return command if self.whole else self.wrap(command)

    def whole_command(self, world, command):
        return self.wrap(command) if self.whole else command


class ReadOnly(Surrounding):
    """Neither the home folder nor /tmp can be written to."""
    may_lack = (UNRECORDED, WAITS, LATER, r"[Rr]ead-only")

    def refused(self):
        return can_unshare("-m")

    def whole_command(self, world, command):
        folder = world.folder
        return ["unshare", "-m", *shell(
            f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}", command)]


class Stopped(Surrounding):
    """SIGSTOP for `seconds_stopped`, of the relay or the collector."""
    may_lack = (LATER, LOST)

    def __init__(self, who, seconds_stopped):
        self.who, self.seconds_stopped = who, seconds_stopped

    def during(self, world, job):
        time.sleep(0.5)
        pids = getattr(world, self.who)()
        kill_all(pids, signal.SIGSTOP)
        world.undo.callback(kill_all, pids, signal.SIGCONT)
        world.stopped = (time.monotonic() + self.seconds_stopped, pids)

    def relieve(self, world):
        until, pids = world.stopped
        time.sleep(max(0.0, until - time.monotonic()))
        kill_all(pids, signal.SIGCONT)


class Killed(Surrounding):
    """SIGKILL, again and again, of the relay or the collector."""
    may_lack = (LATER, WAITS)

    def __init__(self, who):
        self.who = who

    def during(self, world, job):
        while job.poll() is None:
            time.sleep(0.4)
            kill_all(getattr(world, self.who)())


class KilledWhileUpgrading(Surrounding):
    """The database is of an older lull, and the collector is killed a few times while it
    brings it up to date."""
    may_lack = (WAITS, LATER)

    def prepare(self, world):
        subprocess.run([guest.LULL, "run", "--quiet", "--", "true"], env=world.environment,
                       check=True)
        guest.stop_collector(world.folder)
        (path,) = glob.glob(os.path.join(world.data, "lull", "*.db"))
        with contextlib.closing(sqlite3.connect(path)) as database:
            older = open(os.path.join(HERE, "back_to_schema_7.sql"), encoding="utf-8").read()
            database.executescript(older)
        starter = os.path.join(world.folder, "lulld_killed_early")
        real = collector_program()
        with open(starter, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
n=$(cat {world.folder}/starts 2>/dev/null || echo 0)
echo $((n + 1)) > {world.folder}/starts
[ $n -ge 3 ] && exec {real} "$@"
{real} "$@" &
sleep 0.0$((n * 2 + 1))
kill -9 $!
wait $!
echo lulld: killed >&2
exit 1
""")
        os.chmod(starter, 0o755)
        world.environment["LULL_COLLECTOR_PROGRAM"] = starter


class ClockSetBack(Surrounding):
    """The wall clock jumps by a month, back and forth."""

    def prepare(self, world):
        self.offset(world, 0)

    def offset(self, world, seconds):
        with open(os.path.join(world.folder, "clock"), "w", encoding="utf-8") as file:
            file.write(str(seconds))

    def whole_command(self, world, command):
        variables = guest.with_settable_clock(os.path.join(world.folder, "clock"))
        return ["env", *(f"{name}={value}" for name, value in variables.items()),
                *(guest.LULL_WITH_SHARED_LIBC if word == guest.LULL else word
                  for word in command)]

    def during(self, world, job):
        for seconds in (-2_600_000, 2_600_000, -40):
            time.sleep(0.4)
            self.offset(world, seconds)


class Mixed(Surrounding):
    """Several at once."""

    def __init__(self, parts):
        self.parts = parts
        self.may_lack = sum((part.may_lack for part in parts), ())

    def refused(self):
        return next(filter(None, (part.refused() for part in self.parts)), "")

    def prepare(self, world):
        for part in self.parts:
            part.prepare(world)

    def guest_command(self, world, command, program):
        for part in self.parts:
            command = part.guest_command(world, command, program)
        return command

    def whole_command(self, world, command):
        for part in self.parts:
            command = part.whole_command(world, command)
        return command

    def during(self, world, job):
        beside = [threading.Thread(target=part.during, args=(world, job))
                  for part in self.parts]
        for thread in beside:
            thread.start()
        for thread in beside:
            thread.join()

    def relieve(self, world):
        for part in self.parts:
            part.relieve(world)


class Refused(Exception):
    """What this machine does not let us make."""


ALL = {
    "quiet": Quiet(),
    "disk_full": FullDisk(midway=False),
    "disk_fills_up": FullDisk(midway=True),
    "runtime_removed": RuntimeRemoved(),
    "20_descriptors": Descriptors(whole=False),
    "20_descriptors_for_lull_too": Descriptors(whole=True),
    "address_space": AddressSpace(),
    "no_memfd": Denied("memfd_create"),
    "no_proc": NoProc(whole=False),
    "no_proc_for_lull_either": NoProc(whole=True),
    "read_only": ReadOnly(),
    "relay_stopped": Stopped("relays", 20),
    "collector_stopped": Stopped("collectors", 20),
    "relay_killed": Killed("relays"),
    "collector_killed": Killed("collectors"),
    "collector_killed_upgrading": KilledWhileUpgrading(),
    "clock_set": ClockSetBack(),
}

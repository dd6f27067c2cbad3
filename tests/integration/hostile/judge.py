"""Runs a guest in surroundings, alone and under `lull run`, and judges three things:

  the guest noticed nothing: same output, same exit status, and done within two seconds of
  the time that it takes alone;
  what lull reports is complete, or a plain sentence says what is missing;
  committed = stored + lost, and of a guest that counts, each event is one of them.
"""

import contextlib
import glob
import json
import os
import re
import sqlite3
import subprocess
import tempfile
import threading
import time

import guest
from hostile import surroundings

RELAY_RING = 65535  # daemon/relay/samples/run_delay.h
LATE_SECONDS = 2.0
# What is delivered after the job: by the relay that was left behind, or by the report.
DELIVERY_SECONDS = 90
# A guest is judged late only if it was late each time: this machine may be busy.
ATTEMPTS = 3
MANY_THREADS = 1000  # that begin at once
ATTEMPTS_OF_A_CROWD = 10


class Failure(AssertionError):
    pass


class Ran:
    def __init__(self, status, stdout, stderr, seconds):
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds
        lines = stderr.splitlines(keepends=True)
        self.of_lull = "".join(strip_of_lull(lines)[1])
        # Where a guest names addresses, as PyTorch does when it cannot go on without /proc,
        # they are others in each run.
        self.of_guest = re.sub(r"0x[0-9a-f]+", "0x...", "".join(strip_of_lull(lines)[0]))


def strip_of_lull(lines):
    """Lines of the guest, and those that lull wrote: with its name, or, where it quotes
    what the collector said, up to the log's name."""
    guests, lulls, quoting = [], [], False
    for line in lines:
        if line.startswith("lull") or quoting:
            lulls.append(line)
            quoting = (quoting or line.rstrip().endswith("saying:")) and "(log: " not in line
        else:
            guests.append(line)
    return guests, lulls


def run(command, world, around=None):
    start = time.monotonic()
    job = subprocess.Popen(command, env=world.environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    beside = None
    if around is not None:
        beside = threading.Thread(target=around.during, args=(world, job))
        beside.start()
    try:
        stdout, stderr = job.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        job.kill()
        stdout, stderr = job.communicate()
        raise Failure(f"it hangs; stdout so far: {stdout!r}, stderr: {stderr!r}") from None
    finally:
        if beside is not None:
            beside.join()
    status = job.returncode if job.returncode >= 0 else 128 - job.returncode
    return Ran(status, stdout.decode(errors="replace"), stderr.decode(errors="replace"),
               time.monotonic() - start)


def lull(world, *arguments):
    return subprocess.run([guest.LULL, *arguments], env=world.environment, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)


def made_by_relay(world, job):
    """Events that the relay itself put into the job."""
    (path,) = glob.glob(os.path.join(world.data, "lull", "*.db"))
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        (count,), = database.execute(
            "SELECT COALESCE(SUM(b.count), 0) FROM blocks b JOIN jobs j ON b.job = j.id "
            "WHERE b.ring = ? AND j.uuid LIKE ?", (RELAY_RING, job + "%")).fetchall()
    return count


def report_of(world, name):
    """(the report's JSON, its text) once everything was delivered; None, None where there is
    no such job after a while."""
    deadline = time.monotonic() + DELIVERY_SECONDS
    answer = None
    while True:
        done = lull(world, "report", name, "--json")
        if done.returncode == 0:
            answer = json.loads(done.stdout)
            losses = answer["losses"]
            if (answer["job"]["ended"] and losses["events_committed"] ==
                    losses["events_stored"] + losses["lost_relay"]):
                break
        elif not spools(world):
            return None, None
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return answer, lull(world, "report", name).stdout if answer else done.stderr


def spools(world):
    """Folders with something that is not delivered yet."""
    found = []
    for top in (world.runtime, world.data):
        for folder, _, files in os.walk(top):
            if "spool" in folder and files:
                found.append(folder)
    return found


def check_guest(alone, under, may_take):
    if under.status != alone.status:
        raise Failure(f"exit status {under.status}, alone {alone.status}; stderr: "
                      f"{under.stderr}")
    if under.stdout != alone.stdout:
        raise Failure(f"stdout {under.stdout!r}, alone {alone.stdout!r}")
    if under.of_guest != alone.of_guest:
        raise Failure(f"stderr {under.of_guest!r}, alone {alone.of_guest!r}")
    if under.seconds > alone.seconds + may_take:
        raise Late(f"{under.seconds:.2f} s, alone {alone.seconds:.2f} s")


class Late(Failure):
    """Believed at the third time: others may be at work on the machine."""


class Outrun(Late):
    """So many threads began at once that they did not wait for the one that starts recording: on a
    full machine it gets no processor. All of that was counted and said. Believed at the tenth
    time: how full a machine is changes less from one time to the next than who is late."""


def check_report(program, around, world, under, name):
    """Returns what the report came to, in a few words."""
    answer, text = report_of(world, name)
    said = under.of_lull + (text or "")
    excuse = next((match.group(0) for match in
                   (re.search(pattern, said) for pattern in around.may_lack) if match), "")
    if answer is None:
        if not excuse:
            raise Failure(f"there is no report, and nothing says why: {said!r}")
        return f"no report: {excuse}"
    losses = answer["losses"]
    if losses["events_committed"] != losses["events_stored"] + losses["lost_relay"]:
        raise Failure(f"committed is not stored + lost: {losses}; spools {spools(world)}")
    complete = "Nothing lost" in text
    if program.counts and under.stdout:
        calls, threads = map(int, under.stdout.split()[-2:])
        recorded = losses["events_committed"] - made_by_relay(world, answer["job"]["id"])
        counted = recorded + losses["lost_ring_full"] + losses["lost_no_ring"]
        if complete and recorded != calls + threads:
            raise Failure(f"\"Nothing lost\", but {recorded} events of {calls} calls on "
                          f"{threads} threads: {losses}")
        if counted > calls + threads:
            raise Failure(f"{counted} events of {calls} calls on {threads} threads")
        # A thread that found no ring has no event for its start, either.
        least = calls if losses["lost_no_ring"] else calls + threads
        if counted < least and not excuse:
            raise Failure(f"{calls + threads - counted} events are neither recorded nor "
                          f"counted as lost, and nothing says why: {said!r}")
    if not complete and not excuse:
        if (program.counts and int(under.stdout.split()[-1]) >= MANY_THREADS
                and losses["events_lost"] == losses["lost_no_ring"]):
            raise Outrun(f"threads outran the start: {losses}")
        raise Failure(f"something is missing, and nothing says what: {said!r}")
    if complete and losses["events_lost"]:
        raise Failure(f"\"Nothing lost\" with losses: {losses}")
    return "complete" if complete else excuse


def judge(program, around):
    """Raises Failure or surroundings.Refused; returns a line for the table."""
    reason = around.refused() if program.command[0] else "it has not got the interpreter"
    if reason:
        raise surroundings.Refused(reason)
    late = outrun = 0
    while True:
        try:
            return judge_once(program, around)
        except Outrun:
            outrun += 1
            if outrun == ATTEMPTS_OF_A_CROWD:
                raise
        except Late:
            late += 1
            if late == ATTEMPTS:
                raise


def judge_once(program, around):
    name = "hostile"
    with tempfile.TemporaryDirectory(prefix="lull-hostile-") as folder:
        world = surroundings.World(folder)
        world.environment.update(program.environment)
        os.makedirs(world.data, 0o700, exist_ok=True)
        with world.undo:
            world.undo.callback(guest.stop_collector, folder)
            around.prepare(world)
            command = around.guest_command(world, list(program.command), program)
            alone = run(around.whole_command(world, command), world)
            under = run(around.whole_command(world, [
                guest.LULL, "run", "--name", name, "--overhead-budget", "100", "--", *command]),
                world, around)
            check_guest(alone, under, LATE_SECONDS + around.seconds)
            around.relieve(world)
            came_to = check_report(program, around, world, under, name)
            return (f"alone {alone.seconds:.1f} s, under lull {under.seconds:.1f} s; "
                    f"{came_to}")

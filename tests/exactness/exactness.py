#!/usr/bin/env python3
"""Events committed = events stored + losses counted, whoever is killed.

Each run starts the emitter under `lull run` with its own runtime and data
folders, kills one kind of process at a random moment (a rank, the relay worker,
the collector, or one of each), and then compares three independent counts:

  the emitter's own tally (in a shared file, so it survives SIGKILL),
  the counters that lull reports,
  the rows that lie in the database.

A thread that is killed between the commit of an event and its own tally makes
the tally short by at most one; nothing else may differ by anything.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

KINDS = ["none", "rank", "relay", "collector", "everything"]


def descendants(pid):
    """pids below `pid`, with their command lines."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            cmdline = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append((int(entry.name), cmdline))
    found, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child[0])
    return found


def find(kind, job, runtime):
    """pids to choose from: ranks, relay workers below `job`; the collector."""
    below = descendants(job)
    if kind == "relay":
        return [pid for pid, cmdline in below if "relay-worker" in cmdline]
    if kind == "rank":
        emitters = [(pid, c) for pid, c in below if "exactness_emitter" in c
                    and "relay-worker" not in c and " run " not in c]
        return [pid for pid, _ in emitters[1:]]  # the first forked the others
    collectors = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                cmdline = (entry / "cmdline").read_bytes().decode()
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "lulld" in cmdline.split("\0")[0] and runtime in environment:
                collectors.append(int(entry.name))
    return collectors


def end_all(folder):
    """Whoever still has the folder in its environment would make its socket there anew."""
    for _ in range(500):
        left = False
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                if folder in (entry / "environ").read_bytes().decode(errors="replace"):
                    os.kill(int(entry.name), signal.SIGKILL)
                    left = True
            except OSError:
                continue
        if not left:
            return
        time.sleep(0.02)


def kill_one(kind, job, runtime, choose):
    for _ in range(200):
        victims = find(kind, job, runtime)
        if victims:
            try:
                os.kill(choose.choice(victims), signal.SIGKILL)
                return True
            except ProcessLookupError:  # a relay that ended by itself: look for the next
                pass
        time.sleep(0.005)
    return False


RELAY_RING = 65535  # daemon/relay/samples/run_delay.h


def stored_in_database(database):
    """(events in the block table, those of them that the relay made itself); fails on
    two blocks that overlap."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    rows = connection.execute(
        "SELECT job, process, ring, first_position, count FROM blocks "
        "ORDER BY job, process, ring, first_position").fetchall()
    connection.close()
    total, of_relay, previous, end = 0, 0, None, 0
    for job, process, ring, first, count in rows:
        if (job, process, ring) == previous and first < end:
            raise AssertionError(f"stored twice: ring {ring} position {first} < {end}")
        previous, end = (job, process, ring), first + count
        total += count
        of_relay += count if ring == RELAY_RING else 0
    return total, of_relay


def delivered_losses(lull, environment):
    """Of the report, once everything has been delivered: `lull run` does not wait for that
    where the machine is busy, and the relay goes on."""
    deadline = time.monotonic() + 60
    while True:
        report = json.loads(subprocess.run(
            [lull, "report", "exact", "--json"], env=environment, check=True,
            stdout=subprocess.PIPE, timeout=60).stdout)
        losses = report["losses"]
        missing = losses["events_committed"] - losses["events_stored"] - losses["lost_relay"]
        if (report["job"]["ended"] and missing == 0) or time.monotonic() > deadline:
            return losses
        time.sleep(0.2)


def run_once(arguments, number, kind, choose, threads):
    with (tempfile.TemporaryDirectory(prefix="lull-exact-") as folder,
          contextlib.ExitStack() as at_end):
        at_end.callback(end_all, folder)
        runtime, data, tally = f"{folder}/runtime", f"{folder}/data", f"{folder}/tally"
        environment = dict(os.environ, LULL_RUNTIME_DIR=runtime, XDG_DATA_HOME=data,
                           XDG_STATE_HOME=f"{folder}/state")
        calls = arguments.events // (arguments.ranks * threads)
        command = [arguments.lull, "run", "--quiet", "--name", "exact",
                   "--overhead-budget", "100",
                   "--gpu", "host",  # what CUPTI says of itself is no call of the emitter
                   "--",
                   arguments.emitter, tally, str(arguments.ranks), str(threads),
                   str(calls), str(arguments.calls_per_ms)]
        job = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        killed = []
        if kind != "none":
            expected_seconds = calls / arguments.calls_per_ms / 1000
            victims = ["relay", "collector", "rank"] if kind == "everything" else [kind]
            for victim in victims:
                time.sleep(choose.uniform(0.02, 0.1 + expected_seconds) / len(victims))
                if job.poll() is None and kill_one(victim, job.pid, runtime, choose):
                    killed.append(victim)
        out, err = job.communicate(timeout=240)

        ranks = [line.split(": ")[1] for line in out.splitlines()]
        wanted = [f"exit {i}" for i in range(arguments.ranks)]
        unharmed = [a == b for a, b in zip(ranks, wanted)]
        assert job.returncode == 0, f"exit status {job.returncode}, stderr: {err}"
        assert unharmed.count(False) == killed.count("rank"), f"ranks: {out!r}"

        losses = delivered_losses(arguments.lull, environment)
        raw = pathlib.Path(tally).read_bytes()
        per_thread = [int.from_bytes(raw[i:i + 8], "little") for i in range(0, len(raw), 8)]
        tallied = sum(per_thread)
        started = sum(1 for value in per_thread if value)  # one kThreadStart each

        stored, of_relay = stored_in_database(f"{data}/lull/lull.db")
        lost = losses["lost_ring_full"] + losses["lost_no_ring"]
        attempts = losses["events_committed"] - of_relay + lost
        slack = threads * 2 if "rank" in killed else 0
        line = (f"run {number}: kill {'+'.join(killed) or 'nothing'}: calls {tallied}, "
                f"committed {losses['events_committed']}, stored {stored}, "
                f"lost {losses['events_lost']}")
        print(line, flush=True)
        assert losses["events_stored"] == stored, "the report and the database disagree"
        assert losses["events_committed"] == stored + losses["lost_relay"], \
            f"committed events are missing: {losses}"
        assert tallied + started <= attempts <= tallied + started + slack, \
            f"the emitter made {tallied} calls on {started} threads: {losses}"
        return tallied, stored, losses["events_lost"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lull", required=True)
    parser.add_argument("--emitter", required=True)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=16, help="over all ranks")
    parser.add_argument("--calls-per-ms", type=int, default=40, help="per thread")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--kill", choices=KINDS + ["all"], default="all")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    choose = random.Random(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    totals = [0, 0, 0]
    for number in range(arguments.runs):
        kinds = KINDS[1:] if arguments.kill == "all" else [arguments.kill]
        counts = run_once(arguments, number, kinds[number % len(kinds)], choose,
                          arguments.threads // arguments.ranks)
        totals = [a + b for a, b in zip(totals, counts)]
    print(f"{arguments.runs} runs: {totals[0]} calls, {totals[1]} events stored, "
          f"{totals[2]} lost and counted, none missing, none twice")


if __name__ == "__main__":
    sys.exit(main())

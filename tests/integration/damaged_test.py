#!/usr/bin/env python3
"""Databases, spools and folders that are damaged, or somebody else's. Whatever is found
there: a sentence that says what is wrong, status 1, no crash, no wait without end, and
"Nothing lost" only of a job of which nothing is. A row is a line.

LULL_SEED chooses the bytes that are damaged at random.
"""

import contextlib
import glob
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import guest

CALLS = os.path.join(guest.GUESTS, "crowd")
NOBODY = 65534
# A machine with time takes less than one second.
PATIENCE_SECONDS = 25
SEED = os.environ.get("LULL_SEED", "1")


def random_of(name):
    return random.Random(f"{SEED}/{name}")


def rewrite(path, change):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    content = change(content, random_of(path.rsplit("/", 1)[-1]))
    with open(path, "wb") as file:
        file.write(content)


def cut(content, choose):
    return content[:choose.randrange(1, len(content))]


def flip(content, choose):
    content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    return content


def noise(content, choose):
    for _ in range(200):
        content[choose.randrange(len(content))] = choose.randrange(256)
    return content


def zeros(content, choose):
    at = choose.randrange(len(content))
    return content[:at] + bytes(len(content) - at)


def lengths(content, choose):
    """As a record's length could be: two GiB."""
    at = choose.randrange(len(content) - 4)
    content[at:at + 4] = b"\xff\xff\xff\x7f"
    return content


def nothing(content, choose):
    return b""


def make_folder(path):
    os.unlink(path)
    os.mkdir(path)


def make_pipe(path):
    os.unlink(path)
    os.mkfifo(path)


def make_huge(path):
    os.truncate(path, 1 << 42)


def each(change):
    """`change` of what rewrite() gives, as a damage."""
    return lambda path: rewrite(path, change)


def newer_schema(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version=99")


def other_program(path):
    os.unlink(path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE bookmarks(url TEXT)")


CORRUPT = r"the database .* is truncated or corrupt .*--database"
# what it is called, which file, how it is damaged, what the error says ("": any, or none
# where what was damaged happened to be of no use)
DATABASES = [
    ("cut", "lull.db", each(cut), CORRUPT),
    ("a flipped bit", "lull.db", each(flip), ""),
    ("noise", "lull.db", each(noise), ""),
    ("zeros from somewhere on", "lull.db", each(zeros), ""),
    ("notes of somebody", "lull.db", each(lambda content, choose: b"my notes" * 99),
     "is not a database of lull"),
    ("of another program", "lull.db", other_program, "is not a database of lull"),
    ("of a newer lull", "lull.db", newer_schema, "has schema 99"),
    ("a folder", "lull.db", make_folder, "is not a database of lull"),
    ("a pipe", "lull.db", make_pipe, "is not a database of lull"),
    ("the log is cut", "lull.db-wal", each(cut), ""),
    ("a flipped bit in the log", "lull.db-wal", each(flip), ""),
    ("noise in the log", "lull.db-wal", each(noise), ""),
    ("the log is a folder", "lull.db-wal", make_folder, "cannot write to the database"),
    ("the lock is a folder", "lull.db.lock", make_folder, "the lock of the database"),
]

REFUSED = "could not be delivered: .* is not the spool of a job, or its file `hello`"
# what it is called, which file, how it is damaged, what stderr says
SPOOLS = [
    ("cut", "00000002.spool", each(cut), ""),
    ("a flipped bit", "00000002.spool", each(flip), ""),
    ("a flipped bit in the first", "00000001.spool", each(flip), ""),
    ("noise", "00000002.spool", each(noise), ""),
    ("enormous lengths", "00000002.spool", each(lengths), ""),
    ("zeros from somewhere on", "00000003.spool", each(zeros), ""),
    ("empty", "00000003.spool", each(nothing), ""),
    ("gone", "00000002.spool", os.unlink, ""),
    ("the end is gone", "00000003.spool", os.unlink, ""),
    ("of four TiB", "00000002.spool", make_huge, ""),
    ("a pipe", "00000002.spool", make_pipe, ""),
    ("a folder", "00000002.spool", make_folder, ""),
    ("the end is a folder", "00000003.spool", make_folder, ""),
    ("hello is cut", "hello", lambda path: os.truncate(path, 1000), REFUSED),
    ("hello of four TiB", "hello", make_huge, REFUSED),
    ("hello is a pipe", "hello", make_pipe, REFUSED),
    ("hello is a folder", "hello", make_folder, REFUSED),
]


def somebodys_folder(path):
    os.mkdir(path, 0o755)
    os.chown(path, NOBODY, NOBODY)


def link_to_somebodys_folder(path):
    somebodys_folder(path + ".elsewhere")
    os.symlink(path + ".elsewhere", path)


def link_to_nowhere(path):
    os.symlink(path + ".nowhere", path)


def open_to_all(path):
    os.mkdir(path)
    os.chmod(path, 0o777)


def a_file(path):
    with open(path, "w", encoding="utf-8"):
        pass


def inside(name, make):
    def plant(path):
        os.mkdir(path, 0o700)
        make(os.path.join(path, name))
    return plant


RUNTIME = r"the runtime directory cannot be used: .*LULL_RUNTIME_DIR"
DATA = r"the data directory cannot be used: .*XDG_DATA_HOME"
UNRECORDED = "the job runs without being recorded"
WAITS = "what is recorded waits in "
# what it is called, whose place is taken ("runtime", "data"), how, what is said of it, what
# becomes of a job
PLACES = [
    ("somebody else's", "runtime", somebodys_folder, RUNTIME, UNRECORDED),
    ("a link to somebody else's", "runtime", link_to_somebodys_folder, RUNTIME, UNRECORDED),
    ("a link to nowhere", "runtime", link_to_nowhere, RUNTIME, UNRECORDED),
    ("open to all", "runtime", open_to_all, RUNTIME, UNRECORDED),
    ("a file", "runtime", a_file, RUNTIME, UNRECORDED),
    ("the socket is a file", "runtime", inside("collector.sock", a_file),
     "collector.sock is there and is no socket", WAITS),
    ("the lock is a folder", "runtime", inside("collector.lock", os.mkdir),
     "collector.lock: Is a directory", WAITS),
    ("the log is a folder", "runtime", inside("collector.log", os.mkdir),
     "collector.log: Is a directory", WAITS),
    ("the log is a link", "runtime", inside("collector.log", link_to_nowhere),
     "collector.log: Too many levels", WAITS),
    ("somebody else's", "data", somebodys_folder, DATA, WAITS),
    ("a link to somebody else's", "data", link_to_somebodys_folder, DATA, WAITS),
    ("open to all", "data", open_to_all, DATA, WAITS),
    ("a file", "data", a_file, DATA, WAITS),
]


class World:
    """The folders of one row."""

    def __init__(self, test):
        self.folder = tempfile.mkdtemp(prefix="lull-damaged-")
        # A relay may remove its socket meanwhile.
        test.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        test.addCleanup(guest.stop_collector, self.folder)
        # As if nothing were chosen: the folders have names that anybody may guess.
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=self.folder,
                                XDG_DATA_HOME=os.path.join(self.folder, "data"))
        for name in ("LULL_RUNTIME_DIR", "LULL_COLLECTOR", "LULL_COLLECTOR_PROGRAM"):
            self.environment.pop(name, None)
        self.runtime = os.path.join(self.folder, "lull")
        self.data = os.path.join(self.folder, "data", "lull")
        os.mkdir(os.path.join(self.folder, "data"), 0o700)

    def lull(self, *arguments, **environment):
        start = time.monotonic()
        done = subprocess.run([guest.LULL, *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=120,
                              env={**self.environment, **environment})
        done.seconds = time.monotonic() - start
        return done


class Case(unittest.TestCase):
    def check_rows(self, table, check):
        for row in table:
            with self.subTest(" / ".join(part for part in row[:2])):
                check(*row)

    def check_sentence(self, done, pattern):
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertLess(done.seconds, PATIENCE_SECONDS)
        for crash in ("terminate called", "Socket closed", "Segmentation"):
            self.assertNotIn(crash, done.stderr)
        if pattern:
            self.assertRegex(done.stderr.replace("\n", " "), pattern)
        if done.returncode == 1:
            self.assertRegex(done.stderr, r"(?m)^lull \w+: ")
            self.assertEqual(done.stdout, "")

    def check_report(self, world, events, pattern):
        """What is said of the job `dear`, which had so many events."""
        text = world.lull("report", "dear")
        self.check_sentence(text, pattern)
        answer = world.lull("report", "dear", "--json")
        self.assertEqual(answer.returncode, text.returncode, answer.stderr)
        if text.returncode == 1:
            return
        losses = json.loads(answer.stdout)["losses"]
        if "Nothing lost" in text.stdout:
            self.assertEqual(losses["events_stored"], events, text.stdout)


class Databases(Case):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix="lull-damaged-")
        cls.addClassCleanup(shutil.rmtree, cls.kept)

    def make(self, world):
        """A job in the database, part of it in SQLite's log, as after a power failure."""
        done = world.lull("run", "--quiet", "--", CALLS, "together", "4", "2000")
        self.assertEqual(done.returncode, 0, done.stderr)
        guest.stop_collector(world.folder)
        done = world.lull("run", "--quiet", "--name", "dear", "--", CALLS, "together", "4",
                          "3000")
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.copytree(world.data, os.path.join(self.kept, "lull"))
        return sum(map(int, done.stdout.split()))

    def test_that_are_damaged(self):
        events = self.make(World(self))

        def check(_, file, damage, pattern):
            world = World(self)
            shutil.copytree(os.path.join(self.kept, "lull"), world.data)
            path = os.path.join(world.data, file)
            if file == "lull.db":  # all of it in the file
                with contextlib.closing(sqlite3.connect(path)) as database:
                    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    database.execute("PRAGMA journal_mode=DELETE")
            damage(path)
            self.check_report(world, events, pattern)
            if pattern:
                done = world.lull("run", "--", "sh", "-c", "echo out; exit 3")
                self.assertEqual((done.returncode, done.stdout), (3, "out\n"), done.stderr)
                self.assertIn(WAITS, done.stderr)
                self.assertRegex(done.stderr.replace("\n", " "), pattern)

        self.check_rows(DATABASES, check)


class Spools(Case):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix="lull-damaged-")
        cls.addClassCleanup(shutil.rmtree, cls.kept)

    def make(self, world):
        """A job that nobody took: three files in its spool."""
        no = os.path.join(world.folder, "no")
        with open(no, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho no collector today\nexit 1\n")
        os.chmod(no, 0o755)
        done = world.lull("run", "--name", "dear", "--", CALLS, "together", "64", "3000",
                          LULL_COLLECTOR_PROGRAM=no)
        self.assertEqual(done.returncode, 0, done.stderr)
        (hello,) = glob.glob(f"{world.data}/spool/*/hello")
        self.assertEqual(sorted(map(os.path.basename, glob.glob(f"{world.data}/spool/*/*.spool"))),
                         ["00000001.spool", "00000002.spool", "00000003.spool"])
        shutil.copytree(os.path.dirname(hello), os.path.join(self.kept, "job"))
        return sum(map(int, done.stdout.split()))

    def test_that_are_damaged(self):
        events = self.make(World(self))

        def check(_, file, damage, pattern):
            world = World(self)
            os.makedirs(f"{world.data}/spool", 0o700)
            os.chmod(world.data, 0o700)
            shutil.copytree(os.path.join(self.kept, "job"), f"{world.data}/spool/job")
            damage(f"{world.data}/spool/job/{file}")
            self.check_report(world, events, pattern)
            # What is left of a job whose name is known arrives.
            self.assertEqual(os.path.exists(f"{world.data}/spool/job"), file == "hello")
            self.assertEqual(world.lull("jobs").returncode, 0)

        self.check_rows(SPOOLS, check)


class Places(Case):
    def test_that_others_have_taken(self):
        def check(name, which, plant, pattern, becomes):
            if os.geteuid() != 0 and "somebody" in name:
                print(f"SKIPPED: {which} is {name}: only root can make such a folder",
                      file=sys.stderr)
                return
            world = World(self)
            plant(world.runtime if which == "runtime" else world.data)
            done = world.lull("report")
            self.check_sentence(done, pattern)
            self.assertEqual(done.returncode, 1)
            done = world.lull("run", "--", "sh", "-c", "echo out; exit 3")
            self.assertEqual((done.returncode, done.stdout), (3, "out\n"), done.stderr)
            self.assertRegex(done.stderr.replace("\n", " "), pattern)
            self.assertIn(becomes, done.stderr)
            self.check_sentence(world.lull("jobs"), pattern)

        self.check_rows(PLACES, check)


if __name__ == "__main__":
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""Lines of source text around each site: those that ran, never those of somebody else, and
none where they are not wanted."""

import contextlib
import ctypes
import json
import os
import sqlite3
import tempfile
import time
import unittest

import guest

HOSTILE = "</script><script>alert(1)</script><!-- & \u202e \u2028 '\"`${1}"
# `collect` is on line 6, and line 7 is hostile.
PROGRAM = f"""import gc
import sys

def collect():
    # before
    gc.collect()
    pass  # {HOSTILE}

for _ in range(20):
    collect()
"""


class Sources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.temporary = tempfile.TemporaryDirectory(prefix="lull-source-")
        cls.folder = cls.temporary.name

    @classmethod
    def tearDownClass(cls):
        cls.host.close()
        cls.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        mode = {"encoding": "utf-8"} if isinstance(text, str) else {}
        with open(self.path(name), "w" if mode else "wb", **mode) as file:
            file.write(text)
        return self.path(name)

    def run_job(self, name, program, *options, cwd=None):
        done = guest.execute([guest.LULL, "run", "--quiet", "--name", name, *options, "--",
                              "python3", program], self.host.environment,
                             cwd=cwd or self.folder)
        self.assertEqual(done.status, 0, done.stderr)

        def ended():
            job = self.report(name)["job"]
            return job["ended"]
        guest.wait_until(ended)
        return {(one["file"], one["line"]): one for one in self.report(name)["sources"]}

    def report(self, name):
        done = guest.execute([guest.LULL, "report", name, "--json", "--top", "0"],
                             self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_lines_that_ran_are_kept(self):
        program = self.write("kept.py", PROGRAM)
        sources = self.run_job("kept", program)
        one = sources[(program, 6)]
        self.assertEqual(one["first_line"], 4)
        self.assertEqual(one["lines"], PROGRAM.split("\n")[3:8])
        # What is written later changes nothing.
        self.write("kept.py", "print('another program')\n" * 20)
        again = {(one["file"], one["line"]): one for one in self.report("kept")["sources"]}
        self.assertEqual(again[(program, 6)], one)

    def test_only_sites_of_the_answer_and_each_once(self):
        program = self.write("once.py", PROGRAM)
        self.run_job("once", program)
        report = self.report("once")
        keys = [(one["file"], one["line"]) for one in report["sources"]]
        self.assertEqual(len(keys), len(set(keys)))
        sites = json.dumps({**report, "sources": []})
        for file, line in keys:
            self.assertIn(json.dumps(file), sites)
            self.assertIn(f'"line": {line}', sites)
        text = guest.execute([guest.LULL, "report", "once"], self.host.environment).stdout
        self.assertNotIn("gc.collect()", text)

    def test_none_where_none_are_wanted(self):
        program = self.write("none.py", PROGRAM)
        self.assertEqual(self.run_job("none", program, "--no-source"), {})
        database = os.path.join(self.host.environment["XDG_DATA_HOME"], "lull", "lull.db")
        with open(database, "rb") as file:
            stored = file.read()
        if os.path.exists(database + "-wal"):
            with open(database + "-wal", "rb") as file:
                stored += file.read()
        self.write("marked.py", PROGRAM.replace("# before", "# mark-of-secret-text"))
        self.assertEqual(self.run_job("marked", self.path("marked.py"), "--no-source"), {})
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        jobs = [row[0] for row in connection.execute(
            "SELECT DISTINCT job FROM sources JOIN jobs ON jobs.id=job "
            "WHERE CAST(def AS TEXT) LIKE '%mark-of-secret%'")]
        connection.close()
        self.assertEqual(jobs, [])

    def test_the_file_beside_the_code_can_say_so(self):
        folder = self.path("beside")
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "lull.toml"), "w", encoding="utf-8") as file:
            file.write("no-source = true\n")
        program = self.write("beside/program.py", PROGRAM)
        self.assertEqual(self.run_job("beside", program, cwd=folder), {})

    def test_the_strongest_file_decides_also_where_it_says_false(self):
        folder = self.path("false")
        os.mkdir(folder, 0o755)
        program = self.write("false/program.py", PROGRAM)
        self.write("false/lull.toml", "no-source = false\n")
        with self.users_file("no-source = true\n"):
            self.assertIn((program, 6), self.run_job("false", program, cwd=folder))
            os.unlink(os.path.join(folder, "lull.toml"))
            self.assertEqual(self.run_job("true", program, cwd=folder), {})

    @contextlib.contextmanager
    def users_file(self, text):
        os.makedirs(self.path("users/lull"), 0o755, exist_ok=True)
        self.write("users/lull/lull.toml", text)
        before = self.host.environment.get("XDG_CONFIG_HOME")
        self.host.environment["XDG_CONFIG_HOME"] = self.path("users")
        try:
            yield
        finally:
            del self.host.environment["XDG_CONFIG_HOME"]
            if before is not None:
                self.host.environment["XDG_CONFIG_HOME"] = before

    def test_none_where_a_file_that_may_forbid_them_cannot_be_used(self):
        folder = self.path("unusable")
        os.mkdir(folder, 0o755)
        program = self.write("unusable/program.py", PROGRAM)
        for number, (text, mode) in enumerate((("no_source = true\n", 0o644),
                                               ("no-source = true\nfoo = [\n", 0o644),
                                               ("no-source = 7up\n", 0o644),
                                               ("no-source = true\n", 0o666),
                                               ("no-source = true\n#" + "x" * 70_000, 0o644))):
            with self.subTest(text[:40], mode=mode):
                path = self.write("unusable/lull.toml", text)
                os.chmod(path, mode)
                name = f"unusable-{number}"
                done = guest.execute([guest.LULL, "run", "--name", name, "--", "python3",
                                      program], self.host.environment, cwd=folder)
                self.assertEqual(done.status, 0, done.stderr)
                self.assertIn("lull.toml", done.stderr)
                guest.wait_until(lambda name=name: self.report(name)["job"]["ended"])
                self.assertEqual(self.report(name)["sources"], [])

    def test_a_job_with_ld_preload_alone_obeys_the_users_file(self):
        # What ends at once may do so before anybody has read its text, on a full machine.
        program = self.write("alone.py", PROGRAM + "\nimport time\ntime.sleep(1)\n")
        build = os.path.dirname(os.path.dirname(guest.LULL))
        for link, target in (("bin/lull", guest.LULL), ("lib/lull/liblull.so",
                                                        f"{build}/preload/liblull.so")):
            os.makedirs(os.path.dirname(self.path("installed/" + link)))
            os.symlink(target, self.path("installed/" + link))
        shim = self.path("installed/lib/lull/liblull.so")

        def sources(expected, text):
            before = {job["id"] for job in self.jobs()}
            with self.users_file(text):
                done = guest.execute(["python3", program],
                                     {**self.host.environment, "LD_PRELOAD": shim})
            self.assertEqual(done.status, 0, done.stderr)
            guest.wait_until(lambda: [job for job in self.jobs()
                                      if job["id"] not in before and job["ended"]])
            (job,) = [job for job in self.jobs() if job["id"] not in before]
            self.assertEqual(bool(self.report(job["id"])["sources"]), expected)

        sources(True, "quiet = true\n")
        sources(False, "no-source = true\ncollector = \"nonsense\"\n")

    def jobs(self):
        return json.loads(guest.execute([guest.LULL, "jobs", "--json", "--top", "0"],
                                        self.host.environment).stdout)["jobs"]

    def test_a_file_that_changed_after_the_job_began_gives_none(self):
        module = self.write("changed.py", PROGRAM)
        launcher = self.write("launcher.py", f"""
import runpy, sys, time
code = compile(open({module!r}).read(), {module!r}, "exec")
open({module!r}, "a").write("# changed\\n")
exec(code, {{"__name__": "other"}})
""")
        sources = self.run_job("changed", launcher)
        self.assertNotIn((module, 6), sources)

    def test_what_is_no_file_of_text_gives_none_and_nobody_waits(self):
        os.mkfifo(self.path("pipe.py"))
        os.symlink("/etc/shadow", self.path("shadow.py"))
        huge = self.write("huge.py", PROGRAM + "#" * (2 << 20))
        names = [self.path("pipe.py"), "/dev/zero", self.folder, self.path("gone.py"),
                 huge, "relative.py", "<string>"]
        launcher = self.write("strange.py", f"""
for name in {names!r}:
    exec(compile({PROGRAM!r}, name, "exec"), {{"__name__": "other"}})
""")
        began = time.monotonic()
        sources = self.run_job("strange", launcher)
        self.assertLess(time.monotonic() - began, 60)
        for name in names:
            self.assertNotIn((name, 6), sources, name)
        self.assertIn((launcher, 3), self.all_lines("strange"))

    @unittest.skipIf(os.geteuid() != 0, "only root can let others wait for a file")
    def test_a_file_system_that_hangs_holds_nothing_up(self):
        hanging = self.write("hanging.py", PROGRAM)
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.fanotify_init(0x04 | 0x01, os.O_RDONLY)  # CLASS_CONTENT | CLOEXEC
        if watch < 0:
            self.skipTest("no fanotify here: " + os.strerror(ctypes.get_errno()))
        # Who opens the file waits for an answer, which never comes.
        program = self.write("hangs.py", f"""
import ctypes, gc, time
code = compile({PROGRAM!r}, {hanging!r}, "exec")
exec(code, {{"__name__": "other"}})
time.sleep(1)  # what was read until here is asked for
for _ in range(10):
    gc.collect()
""")
        try:
            if libc.fanotify_mark(watch, 0x01, ctypes.c_uint64(0x00010000), -100,
                                  hanging.encode()) != 0:  # ADD, OPEN_PERM
                self.skipTest("no fanotify here: " + os.strerror(ctypes.get_errno()))
            began = time.monotonic()
            self.run_job("hangs", program)
            took = time.monotonic() - began
        finally:
            os.close(watch)  # lets all who wait open it
        self.assertLess(took, 20)
        answer = self.report("hangs")
        self.assertGreaterEqual(sum(row["count"] for row in answer["gc_pauses"]), 30)
        self.assertEqual(answer["losses"]["events_lost"], 0, answer["losses"])
        self.assertFalse([file for file, _ in self.all_lines("hangs") if file == hanging])

    def all_lines(self, name):
        """All lines that are kept of a job, whether a report names them or not."""
        database = os.path.join(self.host.environment["XDG_DATA_HOME"], "lull", "lull.db")
        identity = self.report(name)["job"]["id"]
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        rows = connection.execute("SELECT def FROM sources JOIN jobs ON jobs.id=job "
                                  "WHERE uuid=?", (identity,)).fetchall()
        connection.close()
        lines = set()
        for (blob,) in rows:  # file = 1, line = 2
            size, at = blob[1], 2
            if size & 0x80:
                size, at = (size & 0x7f) | blob[2] << 7, 3
            file, at = blob[at:at + size].decode(), at + size
            assert blob[at] == 0x10
            line, shift, at = 0, 0, at + 1
            while True:
                line |= (blob[at] & 0x7f) << shift
                shift += 7
                at += 1
                if not blob[at - 1] & 0x80:
                    break
            lines.add((file, line))
        return lines

    @unittest.skipUnless(os.geteuid() == 0, "root alone can give up its rights")
    def test_what_a_process_could_not_read_any_more_is_not_read(self):
        secret = self.write("secret.py", PROGRAM.replace("# before", "# secret"))
        os.chmod(secret, 0o600)
        program = self.write("drops.py", f"""
import os, time
os.setgroups([]); os.setgid(65534); os.setuid(65534)
exec(compile({PROGRAM!r}, {secret!r}, "exec"), {{"__name__": "other"}})
time.sleep(1)
""")
        self.run_job("drops", program)
        self.assertNotIn((secret, 6), self.all_lines("drops"))

    def test_long_lines_and_bytes_that_are_no_text_are_bounded(self):
        text = PROGRAM.replace("# before", "# " + "x" * 10_000).encode()
        text = text.replace(b"pass  #", b"pass  # \xff\xfe")
        program = self.write("bounded.py", b"# -*- coding: latin-1 -*-\n" + text)
        one = self.run_job("bounded", program)[(program, 7)]
        self.assertEqual(len(one["lines"]), 5)
        for line in one["lines"]:
            self.assertLessEqual(len(line.encode()), 200)
        self.assertIn("\ufffd", one["lines"][3])

    def test_a_page_shows_them_and_comes_to_no_harm(self):
        program = self.write("page.py", PROGRAM)
        self.run_job("page", program)
        page = guest.execute([guest.LULL, "report", "page", "--html", "-"],
                             self.host.environment).stdout
        data = page[page.index('id="lull-data">') + len('id="lull-data">'):]
        data = json.loads(data[:data.index("</script>")])
        (one,) = [one for one in data["report"]["sources"] + data["sources"]
                  if one["file"] == program and one["line"] == 6]
        self.assertIn(HOSTILE, one["lines"][3])
        self.assertNotIn("<script>alert", page)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Tags and pins of jobs: set, listed, compared by, kept; also after the collector's restart."""

import glob
import json
import os
import re
import sqlite3
import subprocess
import unittest

import guest
import page_test


class Marks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        for name, *options in (("one", "--tag", "naive", "--tag", "pr/7", "--tag", "naive"),
                               ("two", "--tag=naive"), ("three",)):
            done = guest.execute([guest.LULL, "run", "--quiet", "--name", name, *options, "--",
                                  "python3", "-c", "import gc; gc.collect()"],
                                 cls.host.environment)
            assert (done.status, done.stderr) == (0, ""), done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def lull(self, *arguments, status=0):
        done = guest.execute([guest.LULL, *arguments], self.host.environment)
        self.assertEqual(done.status, status, done.stderr)
        return done.stderr if status else done.stdout

    def listed(self, *arguments):
        rows = json.loads(self.lull("jobs", "--json", *arguments))["jobs"]
        return {row["name"]: (row["tags"], row["pinned"]) for row in rows}

    def setUp(self):  # as `lull run` left them
        for name, tags in (("one", ["naive", "pr/7"]), ("two", ["naive"]), ("three", [])):
            (row,) = json.loads(self.lull("unpin", name, "--json"))["jobs"]
            if row["tags"]:
                self.lull("untag", name, *row["tags"])
            if tags:
                self.lull("tag", name, *tags)

    def test_a_run_is_tagged_from_its_start_and_found_by_its_tags(self):
        self.assertEqual(self.listed(), {"one": (["naive", "pr/7"], False),
                                         "two": (["naive"], False), "three": ([], False)})
        self.assertEqual(set(self.listed("--tag", "naive")), {"one", "two"})
        self.assertEqual(set(self.listed("--tag", "naive", "--tag", "pr/7")), {"one"})
        self.assertEqual(len(self.listed("--tag", "naive", "--top", "1")), 1)
        self.assertEqual(self.listed("--tag", "nai"), {})
        self.assertEqual(self.lull("jobs", "--tag", "nai"), "No job has the tag nai.\n")
        self.assertRegex(self.lull("jobs"), r"(?m)\bkept +tags +command$")

    def test_many_jobs_are_tagged_at_once_and_all_or_none(self):
        self.assertRegex(self.lull("tag", "two,three", "new", "naive"),
                         r"^two \(\w{8}\): not pinned; tags naive, new\n"
                         r"three \(\w{8}\): not pinned; tags new, naive\n$")
        self.assertEqual(set(self.listed("--tag", "new")), {"two", "three"})
        said = self.lull("untag", "two,one", "new", status=1)
        self.assertRegex(said, r'^lull untag: job \w{8} has no tag "new"; `lull jobs` lists')
        self.assertEqual(set(self.listed("--tag", "new")), {"two", "three"})
        self.lull("untag", "tag:new", "new", "new")
        self.assertEqual(self.listed("--tag", "new"), {})
        self.assertIn('no job "four"', self.lull("tag", "one,four", "x", status=1))
        self.assertEqual(self.listed("--tag", "x"), {})

    def test_a_job_on_several_hosts_is_marked_as_a_whole(self):
        """What is deleted of it does not come back: to keep the part of one host is no use."""
        host = guest.Host()
        self.addCleanup(host.close)
        self.addCleanup(setattr, self, "host", self.host)
        self.host = host
        begun = os.path.join(os.path.dirname(host.environment["XDG_DATA_HOME"]), "begun")
        ranks = []
        for rank in range(2):
            environment = dict(host.environment, RANK=str(rank), WORLD_SIZE="2")
            ranks.append(subprocess.Popen(
                [guest.LULL, "run", "--quiet", "--name", "parts", "--run-id", "parts",
                 "--tag", f"of-{rank}", "--", "sh", "-c",
                 f"touch {begun}.{rank}; while ! [ -e {begun}.{1 - rank} ]; do sleep 0.01; done;"
                 "python3 -c 'import gc; gc.collect()'"], env=environment))
        self.assertEqual([rank.wait(timeout=60) for rank in ranks], [0, 0])
        (row,) = json.loads(self.lull("jobs", "--json"))["jobs"]
        ids = [part["id"] for part in row["parts"]]
        self.assertEqual(len(ids), 2)

        def marks():
            found = [json.loads(self.lull("report", part, "--json"))["job"] for part in ids]
            return [(job["tags"], job["pinned"]) for job in found]
        before = marks()
        self.lull("pin", ids[1])
        self.assertEqual([pinned for _, pinned in marks()], [True, True])
        self.lull("tag", ",".join(ids), "new")
        self.assertEqual([tags[-1] for tags, _ in marks()], ["new", "new"])
        self.lull("untag", ids[0], "new")
        self.lull("unpin", ids[0])
        self.assertEqual(marks(), before)
        self.lull("untag", ids[0], "of-1")  # the other one had it
        self.assertIn('has no tag "of-1"', self.lull("untag", ids[0], "of-1", status=1))

    def test_what_is_no_tag_is_refused(self):
        for command in (("tag", "one", "a b"), ("tag", "one", "a,b"), ("tag", "one", "x" * 65),
                        ("run", "--tag", "a b", "--", "true")):
            with self.subTest(command):
                self.assertIn("is no tag: a tag is 1 to 64 letters",
                              self.lull(*command, status=2))
        self.assertIn("would have 33 tags", self.lull(
            "tag", "three", *(f"t{i}" for i in range(33)), status=2))
        self.assertIn("a job has 32 tags at most", self.lull(
            "run", *(f"--tag=t{i}" for i in range(33)), "--", "true", status=2))
        self.assertEqual(self.listed()["three"], ([], False))
        self.assertIn("TAG is required", self.lull("tag", "one", status=2))
        self.assertIn("names no job in one place", self.lull("pin", "one,,two", status=2))

    def test_a_pin_outlives_the_collector(self):
        self.assertRegex(self.lull("pin", "tag:naive"),
                         r"^one \(\w{8}\): pinned; tags naive, pr/7\n"
                         r"two \(\w{8}\): pinned; tags naive\n"
                         r"The database has [\d.]+ [KMG]iB, pinned jobs among them; beyond "
                         r"[\d.]+ GiB the oldest others are deleted\.\n$")
        guest.stop_collector(self.host.environment["XDG_DATA_HOME"])
        self.assertEqual(self.listed(), {"one": (["naive", "pr/7"], True),
                                         "two": (["naive"], True), "three": ([], False)})
        self.assertTrue(json.loads(self.lull("gc", "two", "--json"))["job"]["pinned"])
        self.lull("unpin", "two")
        self.assertEqual([marks[1] for marks in self.listed().values()].count(True), 1)

    def test_lists_of_jobs_take_tags(self):
        answer = json.loads(self.lull("diff", "tag:naive", "three", "--json"))
        self.assertEqual(sorted(run["name"] for run in answer["a"]), ["one", "two"])
        self.assertEqual([run["name"] for run in answer["b"]], ["three"])
        for command in (("diff", "tag:none", "one"), ("pin", "tag:none"),
                        ("check", "tag:none", "--fail-if", "sync.calls_per_step > 0")):
            with self.subTest(command):
                self.assertIn('no job has the tag "none"; `lull jobs` lists',
                              self.lull(*command, status=3 if command[0] == "check" else 1))

    def test_who_is_named_twice_is_told_how(self):
        # The same word twice is a wrong command line; what has a tag or a name is no matter
        # of the command line.
        rule = ("--fail-if", "sync.calls_per_step > 0")
        for command, status in ((("diff", "one", "one"), 2), (("check", "one,one", *rule), 2),
                                (("diff", "tag:naive", "tag:naive"), 2),
                                (("diff", "tag:naive", "tag:pr/7"), 1),
                                (("diff", "one", "tag:naive"), 1),
                                (("check", "tag:naive,tag:pr/7", *rule), 3),
                                (("check", "one", "--baseline", "tag:naive", "--fail-if",
                                  "sync.calls_per_step(new) > 0"), 3)):
            with self.subTest(command):
                said = self.lull(*command, status=status)
                self.assertRegex(said, r"one \(\w{8}\) is named twice")
                if status != 2:
                    self.assertRegex(said, r"named twice, by \S+ and by (tag:\S+|one); a job "
                                           "cannot")


class OtherJobs(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)

    def lull(self, *arguments):
        done = guest.execute([guest.LULL, *arguments], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return done

    def test_a_damaged_job_is_unpinned_by_its_id(self):
        self.lull("run", "--quiet", "--name", "lost", "--", "true")
        (row,) = json.loads(self.lull("pin", "lost", "--json").stdout)["jobs"]
        data = self.host.environment["XDG_DATA_HOME"]
        guest.stop_collector(data)
        (path,) = glob.glob(os.path.join(data, "**", "*.db"), recursive=True)
        with sqlite3.connect(path) as database:
            database.execute("UPDATE jobs SET job_info=x'ff'")
        (row,) = json.loads(self.lull("unpin", row["id"], "--json").stdout)["jobs"]
        self.assertFalse(row["pinned"])

    def test_a_damaged_job_is_not_left_out_of_its_tag(self):
        for name in ("lost", "kept"):
            self.lull("run", "--quiet", "--name", name, "--tag", "naive", "--", "true")
        self.lull("run", "--quiet", "--name", "other", "--", "true")
        ids = {row["name"]: row["id"] for row in
               json.loads(self.lull("jobs", "--json").stdout)["jobs"]}
        data = self.host.environment["XDG_DATA_HOME"]
        guest.stop_collector(data)
        (path,) = glob.glob(os.path.join(data, "**", "*.db"), recursive=True)
        with sqlite3.connect(path) as database:
            database.execute("UPDATE jobs SET job_info=x'ff' WHERE uuid=?", (ids["lost"],))
        self.assertIn(ids["lost"][:8], self.lull("jobs", "--tag", "naive").stdout)
        self.assertNotIn("damaged", self.lull("jobs", "--tag", "none").stdout)
        for command, status in ((("diff", "tag:naive", "other"), 1),
                                (("check", "tag:naive", "--fail-if", "step_ms > 1"), 3)):
            done = guest.execute([guest.LULL, *command], self.host.environment)
            self.assertEqual((done.status, done.stdout), (status, ""))
            self.assertIn(f"the row of job {ids['lost'][:8]}, which has the tag \"naive\", in the "
                          "database is damaged", done.stderr)
        (advice,) = re.findall("lull (untag .*)", done.stderr)
        rows = json.loads(self.lull("pin", "tag:naive", "--json").stdout)["jobs"]
        self.assertEqual({row["id"] for row in rows}, {ids["lost"], ids["kept"]})
        self.lull(*advice.split())
        self.lull("diff", "tag:naive", "other")

    def test_names_that_read_as_lists_and_tags_do_are_written_with_a_backslash(self):
        for name in ("a,b", "tag:naive", "c\\d"):
            self.lull("run", "--quiet", "--name", name, "--", "true")
        self.lull("run", "--quiet", "--name", "one", "--tag", "naive", "--", "true")

        def sides(*arguments):
            answer = json.loads(self.lull("diff", *arguments, "--json").stdout)
            return [[run["name"] for run in answer[side]] for side in ("a", "b")]

        self.assertEqual(sides(r"a\,b", r"\tag:naive,c\d"), [["a,b"], ["tag:naive", "c\\d"]])
        self.assertEqual(sides("tag:naive", r"a\,b"), [["one"], ["a,b"]])
        self.assertRegex(self.lull("tag", r"a\,b,\tag:naive", "odd").stdout,
                         r"\Aa,b \(.*\ntag:naive \(.*\n\Z")
        done = guest.execute([guest.LULL, "diff", "a,b", "one"], self.host.environment)
        self.assertEqual(done.status, 1)
        self.assertIn('no job "a"', done.stderr)

    def test_an_import_is_tagged_and_a_second_one_says_that_it_is_not(self):
        path = self.host.environment["XDG_DATA_HOME"] + ".json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(page_test.trace(["imported"]), file)
        self.lull("import", "--quiet", "--tag", "trace", path)
        again = self.lull("import", "--quiet", "--tag", "x", path)
        self.assertIn("its tags stay as they are", again.stderr.replace("\n", " "))
        (row,) = json.loads(self.lull("jobs", "--json", "--tag", "trace").stdout)["jobs"]
        self.assertEqual(row["tags"], ["trace"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

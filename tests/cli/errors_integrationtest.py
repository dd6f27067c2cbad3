"""Whatever goes wrong: a sentence on stderr that says what to do, and the exit code
that the help names."""

import concurrent.futures
import json
import os
import socket
import stat
import subprocess
import tempfile
import unittest

import lull_case
from lull_case import ARGUMENTS, LullCase

QUERIES = ("report", "syncs", "gaps", "kernels", "steps", "allocs", "memory", "gc", "waits",
           "hot", "data", "ops", "jobs")


class Complaints(LullCase):
    def complains(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertNotIn("terminate called", done.stderr)
        self.assertLess(len(done.stderr), 1500)


class WrongCommandLines(Complaints):
    def test_without_a_verb(self):
        done = self.lull()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, self.lull("--help").stdout)
        for verb in QUERIES + ("run", "attach", "doctor"):
            self.assertRegex(done.stderr, rf"\n  {verb} ")

    def test_with_a_verb_that_is_none(self):
        self.complains(self.lull("quux"), 2, "'quux' is no verb", "lull --help")
        for typo, verb in (("repotr", "report"), ("sinks", "syncs"), ("rnu", "run"),
                           ("kernel", "kernels"), ("alloc", "allocs"), ("mem", "memory")):
            with self.subTest(typo=typo):
                self.complains(self.lull(typo), 2, f"'{typo}' is no verb; "
                                                   f"did you mean '{verb}'?\n")

    def test_with_a_flag_that_is_none(self):
        self.complains(self.lull("syncs", "--jsno"), 2,
                       "lull syncs: unknown option --jsno; did you mean '--json'?\n")
        self.complains(self.lull("gaps", "--sinc=2m"), 2, "did you mean '--since'?\n")
        self.complains(self.lull("jobs", "--frobnicate"), 2,
                       "lull jobs: unknown option --frobnicate; see `lull jobs --help`\n")
        self.complains(self.lull("syncs", "one", "two"), 2,
                       "lull syncs: unexpected word two; see `lull syncs --help`\n")
        self.complains(self.lull("run", "--nmae", "x", "--", "true"), 2,
                       "lull run: unknown option --nmae; did you mean '--name'?\n")

    def test_run_without_dashes_where_it_is_clear(self):
        self.start_collector()
        done = self.lull("run", "--quiet", "sh", "-c", "echo \"$@\"; exit 4", "sh", "--name",
                         "x", "--", "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (4, "--name x -- --quiet\n", ""))
        marker = os.path.join(self.folder, "marker")
        for words in (("--name", "python", "no-such", "touch", marker),
                      ("no-such", "--", "touch", marker),
                      ("--name", "x", os.path.join(self.folder, "nothing"), "--lr", "1")):
            with self.subTest(words=words):
                self.complains(self.lull("run", *words), 2, "where the job begins is unclear",
                               "lull run [OPTIONS] -- COMMAND")
        self.assertFalse(os.path.exists(marker))
        done = self.lull("run", "no-such")
        self.assertEqual((done.returncode, done.stderr),
                         (127, "lull run: no-such: command not found\n"))

    def test_what_is_no_number(self):
        for value in ("nan", "NaN", "-nan", "inf", "-inf", "-1", "0", "1e9", "2x"):
            with self.subTest(value):
                self.complains(self.lull("diff", "a", "b", f"--difference={value}"), 2,
                               f"--difference: '{value}' is no number from 0.01 to 1000\n")
        marker = os.path.join(self.folder, "marker")
        self.complains(self.lull("run", "--overhead-budget", "nan", "--", "touch", marker), 2,
                       "--overhead-budget: 'nan' is no number from 0.01 to 100\n")
        self.assertFalse(os.path.exists(marker))

    def test_what_is_no_process(self):
        for value in ("foo", "0", "-5", "12x", "", "99999999999999", "nan", "1.5"):
            for verb in ("attach", "ps"):
                with self.subTest(verb=verb, value=value):
                    self.complains(self.lull(verb, "--", value), 2, f"PID: '{value}' is no PID",
                                   "a number from 1 on", "`lull ps`")

    def test_run_without_a_command(self):
        self.complains(self.lull("run"), 2, "no command to run", "lull run --")
        self.complains(self.lull("run", "--"), 2, "no command to run")

    def test_run_with_a_wrong_flag_does_not_start_the_job(self):
        marker = os.path.join(self.folder, "marker")
        self.complains(self.lull("run", "--nam", "x", "--", "touch", marker), 2,
                       "unknown option --nam; did you mean")
        self.complains(self.lull("run", "--overhead-budget", "lots", "--", "touch", marker), 2,
                       "--overhead-budget")
        self.complains(self.lull("run", "--overhead-budget", "0", "--", "touch", marker), 2,
                       "--overhead-budget")
        for flags, message in (
                (("--gpu", "on"), "--gpu: \"on\" is none of host, window and continuous"),
                (("--schedule", "wait=ten"), "--schedule: wait=ten is neither"),
                (("--schedule", "wait=2s,active=5"), "steps and times cannot be mixed"),
                (("--gpu", "host", "--schedule", "wait=2"),
                 "--schedule is of --gpu window alone")):
            with self.subTest(flags=flags):
                self.complains(self.lull("run", *flags, "--", "touch", marker), 2, message)
        self.assertFalse(os.path.exists(marker))

    def test_queries_with_values_that_are_none(self):
        self.start_collector()
        for option, value in (("--top", "x"), ("--by", "file"), ("--rank", "first"),
                              ("--pid", "-3"), ("--since", "soon"), ("--until", "1w")):
            with self.subTest(option=option):
                self.complains(self.lull("syncs", option, value), 2, option)
        self.complains(self.lull("syncs", "--since", "2m", "--until", "1m"), 2,
                       "later than --since")

    def test_addresses_and_token_files(self):
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("secret")
        os.chmod(token, 0o644)
        for verb in (["run", "--collector"], ["jobs", "--collector"]):
            tail = ["--", "true"] if verb[0] == "run" else []
            self.complains(self.lull(*verb, "nowhere", *tail), 2, "host:port or unix:/path")
            self.complains(self.lull(*verb, "h:1", "--token-file", token, *tail), 2,
                           f"chmod 600 {token}")

    def test_ps_wants_a_pid(self):
        for word in ("train.py", "0", "-1", "99999999999"):
            with self.subTest(word=word):
                self.complains(self.lull("ps", word), 2)

    def test_relay_wants_one_thing_to_do(self):
        self.complains(self.lull("relay"), 2, "--socket PATH", "--deliver DIR")
        self.complains(self.lull("relay", "--socket", self.folder + "/s", "--schedule", "x"),
                       2, "--schedule: \"x\" is not of the form wait=20")


class WrongSurroundings(Complaints):
    UNRECORDED = "the job runs without being recorded"
    SPOOLED = "the job runs; what is recorded waits in "

    def hinders(self, *parts, arguments=(), says=UNRECORDED):
        """lull cannot do its part: the job runs all the same, unless it must not."""
        marker = os.path.join(self.folder, "marker")
        done = self.lull("run", "--must-record", *arguments, "--", "touch", marker)
        self.complains(done, 125, "the job was not started", *parts)
        self.assertFalse(os.path.exists(marker))
        job = f"touch {marker}; echo out; echo error >&2; exit 3"
        done = self.lull("run", *arguments, "--", "sh", "-c", job)
        self.assertEqual((done.returncode, done.stdout), (3, "out\n"), done.stderr)
        for part in (*parts, says, "error\n"):
            self.assertIn(part, done.stderr)
        self.assertTrue(os.path.exists(marker))
        os.unlink(marker)

    def test_a_runtime_directory_that_is_a_file(self):
        with open(self.runtime, "w", encoding="utf-8"):
            pass
        self.hinders(self.runtime, "LULL_RUNTIME_DIR")
        self.complains(self.lull("jobs"), 1, self.runtime)

    def test_a_runtime_directory_that_others_can_write_to(self):
        os.mkdir(self.runtime)
        os.chmod(self.runtime, 0o777)
        self.hinders(self.runtime, "LULL_RUNTIME_DIR")

    def test_a_runtime_directory_that_cannot_be_made(self):
        self.environment["LULL_RUNTIME_DIR"] = "/proc/lull"
        self.hinders("/proc/lull", "LULL_RUNTIME_DIR")

    @unittest.skipIf(os.getuid() != 0, "to be another user needs root")
    def test_a_user_without_a_home_keeps_jobs_below_a_folder_of_its_own(self):
        nobody = 54321  # of whom no passwd knows
        folder, lull, preload = lull_case.belongings(self, nobody)
        environment = {"PATH": os.environ["PATH"], "LULL_RUNTIME_DIR": folder,
                       "LULL_COLLECTOR": "unix:/nowhere", "LULL_PRELOAD_LIBRARY": preload}
        done = self.lull("run", "--", "true", program=lull, env=environment, user=nobody,
                         group=nobody, extra_groups=[], cwd="/")
        self.assertIn(f"what is recorded waits in {folder}/data/spool-remote/", done.stderr)

    def test_a_missing_shim(self):
        self.start_collector()
        self.environment["LULL_PRELOAD_LIBRARY"] = "/nowhere/liblull.so"
        self.hinders("/nowhere/liblull.so", "LULL_PRELOAD_LIBRARY")

    def test_a_collector_that_nobody_started(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{unused.getsockname()[1]}"
            self.hinders(address, "cannot reach", arguments=("--collector", address),
                         says=self.SPOOLED)
            self.complains(self.lull("jobs", "--collector", address), 1, "cannot reach")

    def test_a_collector_that_wants_a_token(self):
        self.start_collector(token="secret")
        self.hinders("wants a token", "--token-file", says=self.SPOOLED)
        token = os.path.join(self.folder, "token")
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w",
                  encoding="utf-8") as file:
            file.write("guess\n")
        self.hinders("refuses the token", arguments=("--token-file", token),
                     says=self.SPOOLED)
        with open(token, "w", encoding="utf-8") as file:
            file.write("secret\n")
        done = self.lull("run", "--quiet", "--token-file", token, "--", "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_private_collector_that_fails_to_start_is_quoted(self):
        broken = self.program("broken", "echo lulld: the database is not ours >&2; exit 1")
        self.environment["LULL_COLLECTOR_PROGRAM"] = broken
        self.hinders("the database is not ours", "collector.log", says=self.SPOOLED)
        self.complains(self.lull("syncs"), 1, "the database is not ours")

    def test_a_job_that_is_not_there(self):
        self.start_collector()
        self.complains(self.lull("syncs", "missing"), 1, "no job 'missing'", "lull jobs")

    def test_a_stdout_that_is_full(self):
        self.start_collector()
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (("jobs",), ("completion", "bash"), ("man", "run"), ("run", "--help")):
                done = self.lull(*words, stdout=full, stderr=-1, capture_output=False)
                self.assertEqual(done.returncode, 1, words)
                self.assertIn("cannot write the answer: No space left", done.stderr)

    def test_closed_standard_descriptors_are_nobody_elses(self):
        """What is opened next would get their numbers, and the answer."""
        self.start_collector()
        for closed in (">&-", "<&- >&-", "<&- >&- 2>&-", "2>&-"):
            done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", ARGUMENTS.lull, "jobs"],
                                  env=self.environment, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), closed)

    def program(self, name, script):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, stat.S_IRWXU)
        return path


class MidJob(Complaints):
    def test_a_collector_that_goes_away_leaves_the_job_alone_and_says_where_the_spool_is(self):
        address = self.start_collector()
        process = self.start_lull("run", "--", "sh", "-c", "echo started; sleep 1; exit 6",
                                  stderr=-1)
        self.assertEqual(process.stdout.readline(), b"started\n")
        self.processes[0].kill()
        _, stderr = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 6)
        self.assertIn(f"lull relay --deliver {self.folder}/data/lull/spool-remote/", stderr.decode())
        self.assertIn(address, stderr.decode())


class PrivateCollector(LullCase):
    def setUp(self):
        super().setUp()
        self.starts = os.path.join(self.folder, "starts")
        program = os.path.join(self.folder, "collector")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho $$ >> {self.starts}\nsleep 0.3\n"
                       f"exec {ARGUMENTS.fake_collector} \"$@\"\n")
        os.chmod(program, 0o700)
        self.environment["LULL_COLLECTOR_PROGRAM"] = program

    def pids(self):
        with open(self.starts, encoding="utf-8") as file:
            return [int(line) for line in file]

    def test_is_started_once_by_any_number_of_callers(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda _: self.lull("jobs", "--json"), range(8)))
        for one in done:
            self.assertEqual((one.returncode, one.stderr), (0, ""))
            self.assertEqual(len(json.loads(one.stdout)["jobs"]), 4)
        self.assertEqual(len(self.pids()), 1)

    def test_survives_the_lull_that_started_it_and_keeps_no_descriptor_of_it(self):
        self.assertEqual(self.lull("jobs").returncode, 0)
        pid = self.pids()[0]
        files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)]
        self.assertEqual(files[0], "/dev/null")
        self.assertEqual(files[1:], [f"{self.runtime}/collector.log"] * 2)
        self.assertEqual(os.getsid(pid), pid)

    def test_is_started_again_after_it_was_killed(self):
        self.assertEqual(self.lull("jobs").returncode, 0)
        os.kill(self.pids()[0], 9)
        self.wait_until(lambda: not os.path.exists(f"/proc/{self.pids()[0]}"), "it is gone")
        self.assertEqual(self.lull("jobs").returncode, 0)
        self.assertEqual(len(self.pids()), 2)

    def test_that_is_killed_during_a_job_is_started_again_for_its_summary(self):
        process = self.start_lull("run", "--", "sh", "-c", "echo started; sleep 3", stderr=-1)
        self.assertEqual(process.stdout.readline(), b"started\n")
        os.kill(self.pids()[0], 9)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertIn(b"More: lull report", stderr)
        self.assertEqual(len(self.pids()), 2)


class Answers(LullCase):
    def setUp(self):
        super().setUp()
        self.start_collector()

    def test_of_every_query_are_tables_or_json(self):
        lists = {"report": "sync_points", "syncs": "sync_points", "allocs": "allocation_sites",
                 "gc": "gc_pauses", "waits": "host_waits", "jobs": "jobs",
                 "gaps": "gaps", "kernels": "kernels", "steps": "steps",
                 "memory": "memory", "hot": "lines", "data": "lines", "ops": "ops"}
        for verb in QUERIES:
            with self.subTest(verb=verb):
                text = self.lull(verb)
                self.assertEqual((text.returncode, text.stderr), (0, ""))
                self.assertIn("3f9a1c20", text.stdout)
                answer = self.lull(verb, "--json")
                self.assertEqual((answer.returncode, answer.stderr), (0, ""))
                self.assertGreater(len(json.loads(answer.stdout)[lists[verb]]), 0)

    def test_of_hot_are_folded_stacks_too(self):
        done = self.lull("hot", "--folded")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in done.stdout.splitlines():
            self.assertRegex(line, r"^(.* )?\d+$")
        self.assertIn("Faces.__getitem__ (/home/ada/resnet/dataset.py:44);", done.stdout)
        done = self.lull("hot", "--folded", "--json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--folded", done.stderr)
        done = self.lull("hot", "--role", "boss")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--role", done.stderr)

    def test_help_of_every_verb_has_an_example(self):
        for verb in (*QUERIES, "run", "attach", "ps", "arm", "disarm", "doctor", "relay"):
            with self.subTest(verb=verb):
                done = self.lull(verb, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, rf"Examples?:\n  lull {verb}")

    def test_version_is_one_line(self):
        self.assertRegex(self.lull("--version").stdout, r"^lull \d+\.\d+\.\d+\ncommit .+\nbuilt by .+\n.+\n$")

    def test_doctor_names_what_to_fix_and_fails(self):
        self.environment["LULL_PRELOAD_LIBRARY"] = "/nowhere/liblull.so"
        done = self.lull("doctor", "--json")
        self.assertEqual(done.returncode, 1)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(checks["preload"]["status"], "error")
        self.assertNotEqual(checks["preload"]["advice"], "")
        self.assertEqual(checks["memfd"]["status"], "ok")
        self.assertEqual(checks["runtime directory"]["status"], "ok")

    def test_doctor_is_not_misled_by_a_cat_that_is_a_static_program(self):
        # As in images with a static busybox: nothing is preloaded into that.
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "cat.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("int main(void) { return 0; }")
            subprocess.run(["cc", "-static", "-o", f"{folder}/cat", source], check=True)
            self.environment["PATH"] = folder + os.pathsep + self.environment["PATH"]
            done = self.lull("doctor", "--json")
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(checks["preload"]["status"], "ok", checks["preload"])


if __name__ == "__main__":
    lull_case.main()

#!/usr/bin/env python3
"""lull check as a gate: red with a program that waits for the GPU in every step, green with
the mended one, red when the wait moved to another file, and neither where nothing can be
told. Rules are about counts, which are exact on any machine."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "tests", "puppets", "compared.py")
UNDECLARED = os.path.join(guest.GUESTS, "undeclared_calls")
STEPS = 60

WAITS = """
def wait(device):
    device.cuda.cudaStreamSynchronize(device.stream)  # SITE
"""
NAIVE = WAITS + """

class Mean(object):
    def __init__(self, device):
        self.device = device

    def update(self, step):
        self.device.launch("short_kernel")
        wait(self.device)
"""
MENDED = NAIVE.replace("        wait(self.device)\n", "")
MOVED = NAIVE.replace(WAITS, "from helpers import wait\n")
LINE = 3
# Two that wait once in each step, at other places of one function; and the first one as it
# reads after an edit.
LOSS = """
class Mean(object):
    def __init__(self, device):
        self.device = device

    def update(self, step):
        cuda = self.device.cuda
        loss = cuda.cudaStreamSynchronize(self.device.stream)
        self.device.launch("short_kernel")
        return step
"""
NORM = LOSS.replace("        loss = cuda.cudaStreamSynchronize(self.device.stream)\n", "").replace(
    "        return step\n",
    "        self.norm = 2 * cuda.cudaStreamSynchronize(self.device.stream)\n        return step\n")
EDITED = "# one more\n" + LOSS.replace("loss = cuda", "mean_loss = cuda")
# What a program can call a file and a function.
HOSTILE_NAME = "<b>&\"']]>\n::error::x\x01\x1b[31m%0A"
HOSTILE = f"""
code = compile("def wait(device):\\n    device.cuda.cudaStreamSynchronize(device.stream)",
               {"/x/" + HOSTILE_NAME + "/a,b:c.py"!r}, "exec")
exec(code)
wait.__code__ = wait.__code__.replace(co_name={HOSTILE_NAME!r})
""" + NAIVE.replace(WAITS, "")
# A step and a collection, and no GPU.
HOST_ONLY = f"""
import gc, sys
sys.path.insert(0, {os.path.dirname(PROGRAM)!r})
import nvtx
ranges = nvtx.Ranges()
for step in range({STEPS}):
    ranges.push(b"step")
    gc.collect()
    ranges.pop()
"""
ANY_SYNC = "sync.calls_per_step > 0.5"
NEW_SYNC = "sync.calls_per_step(new) > 0"


def workflow_steps():
    """("run", what a shell runs) or ("uses", the rest of the step) of docs/checking.md."""
    with open(os.path.join(ROOT, "docs", "checking.md"), encoding="utf-8") as file:
        (text,) = re.findall(r"```yaml\n(.*?)```", file.read(), re.DOTALL)
    steps = text.split("    steps:\n")[1].split("      - ")[1:]
    return [tuple(re.split(r": (?:[|]\n)?", step, maxsplit=1)) for step in steps]


def check_out(folder, metrics):
    """A repository with a training, in place of actions/checkout."""
    for name, text in (("metrics.py", metrics), ("helpers.py", "\n" + WAITS),
                       ("lull.toml", 'step-range = "step"\n'), ("train.py", f"""
import os, sys
os.environ["METRICS"] = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, {os.path.dirname(PROGRAM)!r})
import compared
compared.train(int(sys.argv[sys.argv.index("--steps") + 1]))
""")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


class Gate(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.temporary = tempfile.TemporaryDirectory(prefix="lull-check-")
        cls.folder = cls.temporary.name
        cls.run_job("naive", NAIVE)
        cls.run_job("mended", MENDED)
        cls.run_job("moved", MOVED)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()
        cls.temporary.cleanup()

    @classmethod
    def run_job(cls, name, text, gpu="continuous", program=None, status=0,
                options=()):
        # Each version in a checkout of its own; the last component stays.
        folder = os.path.join(cls.folder, name, "job")
        os.makedirs(folder, exist_ok=True)
        for file, content in (("metrics.py", text), ("helpers.py", "\n" + WAITS)):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write(content)
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--step-range", "step",
             "--gpu", gpu, "--overhead-budget", "100", *options, "--",
             *(program or [sys.executable, PROGRAM, str(STEPS)])],
            {**cls.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "METRICS": folder, "LULL_SIM_CONFIG": "kernel_us=20"})
        assert done.status == status, done.stderr
        return folder

    def check(self, status, *arguments, cwd=None):
        done = guest.execute([guest.LULL, "check", *arguments], self.host.environment,
                             cwd=cwd or self.folder)
        self.assertEqual(done.status, status, (arguments, done.stdout, done.stderr))
        if status != 2:
            self.assertEqual(done.stderr, "")
        return done

    def checked(self, status, *arguments, **options):
        return json.loads(self.check(status, *arguments, "--json", **options).stdout)

    def test_red_with_the_naive_program_and_green_with_the_mended_one(self):
        rule = ("--fail-if", ANY_SYNC)
        red = self.check(1, "naive", *rule).stdout.splitlines()
        self.assertTrue(red[0].startswith(f"failed  {ANY_SYNC}  measured 1"), red)
        self.assertIn("cudaStreamSynchronize at ", red[1])
        self.assertTrue(red[1].endswith(f"naive/job/metrics.py:{LINE} wait: 1"), red)
        self.assertTrue(red[-1].startswith("failed: 1 of 1 rule; naive ("), red)
        green = self.check(0, "mended", *rule).stdout.splitlines()
        self.assertTrue(green[0].startswith(f"passed  {ANY_SYNC}  measured 0"), green)
        self.assertTrue(green[-1].startswith("passed: 1 rule; mended ("), green)

    def test_against_a_baseline_only_what_is_new_counts(self):
        for job, baseline, status in (("naive", "mended", 1), ("mended", "naive", 0),
                                      ("moved", "naive", 1)):
            with self.subTest(job=job, baseline=baseline):
                self.check(status, job, "--baseline", baseline, "--fail-if", NEW_SYNC)
        self.run_job("again", "# a line more\n" + NAIVE)
        self.check(0, "again", "--baseline", "naive", "--fail-if", NEW_SYNC)

    def test_a_baseline_is_a_file_beside_the_code(self):
        for job in ("naive", "mended"):
            done = self.check(0, job, "--write-baseline", f"./{job}.json")
            self.assertEqual(done.stdout, "")
        for job, baseline, status in (("naive", "mended", 1), ("mended", "naive", 0),
                                      ("moved", "naive", 1)):
            with self.subTest(job=job, baseline=baseline):
                rule = ("--fail-if", NEW_SYNC)
                by_file = self.checked(status, job, "--baseline", f"{baseline}.json", *rule)
                by_job = self.checked(status, job, "--baseline", baseline, *rule)

                def told(answer):  # the steps need not be the very same
                    return (answer["verdict"], [run["id"] for run in answer["baseline"]],
                            [(part["site"], part["api"], part["change"], part["moved_from"])
                             for rule in answer["rules"] for part in rule["parts"]])
                self.assertEqual(told(by_file), told(by_job))
        # Against itself every job would pass.
        done = guest.execute([guest.LULL, "check", "naive", "--baseline", "./naive.json",
                              "--fail-if", NEW_SYNC], self.host.environment, cwd=self.folder)
        self.assertEqual((done.status, done.stdout), (3, ""), done.stderr)
        self.assertIn("the baseline is of naive (", done.stderr)
        # It needs nothing of the collector that made it.
        other = guest.Host()
        try:
            with open(os.path.join(self.folder, "naive.json"), encoding="utf-8") as file:
                text = file.read()
            self.assertNotIn(PROGRAM + " ", text)  # no command
            self.assertNotIn('"stack"', text)
            done = guest.execute([guest.LULL, "check", "naive", "--baseline", "./naive.json",
                                  "--fail-if", NEW_SYNC], other.environment, cwd=self.folder)
            self.assertEqual(done.status, 3, done.stderr)  # but the job itself
            self.assertIn("no job", done.stderr)
        finally:
            other.close()

    def test_a_sync_that_replaces_another_in_its_function_is_new(self):
        self.run_job("loss", LOSS)
        self.run_job("norm", NORM)
        self.run_job("edited", EDITED)
        self.run_job("textless", NORM, options=("--no-source",))
        self.check(0, "loss", "--write-baseline", "./loss.json")
        with open(os.path.join(self.folder, "loss.json"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn('"lines"', text)
        self.assertNotIn("cudaStreamSynchronize(", text)  # no source text
        baseline = json.loads(text)
        for run in baseline["runs"]:
            del run["lines"]  # as an older lull wrote it
        with open(os.path.join(self.folder, "older.json"), "w", encoding="utf-8") as file:
            json.dump(baseline, file)
        for job, baseline, status in (("norm", "loss", 1), ("norm", "./loss.json", 1),
                                      ("edited", "loss", 0), ("edited", "./loss.json", 0),
                                      # Nobody knows what the line was: the order counts.
                                      ("textless", "loss", 0), ("norm", "older.json", 0)):
            with self.subTest(job=job, baseline=baseline):
                answer = self.checked(status, job, "--baseline", baseline,
                                      "--fail-if", NEW_SYNC)
                self.assertEqual([(part["change"], part["site"]["line"])
                                  for part in answer["rules"][0]["parts"]],
                                 [("new", NORM[:NORM.index("2 * cuda")].count("\n") + 1)]
                                 if status else [])
                # What passes as an edited line is said to be one.
                self.assertEqual(sum("reads otherwise" in note for note in answer["warnings"]),
                                 job == "edited", answer["warnings"])

    def test_the_workflow_of_the_docs(self):
        for number, (base, pull_request, status) in enumerate(
                ((MENDED, NAIVE, 1), (NAIVE, MENDED, 0), (NAIVE, MOVED, 1))):
            with self.subTest(number), tempfile.TemporaryDirectory(prefix="lull-t-") as folder:
                tools = os.path.join(folder, "tools")
                os.mkdir(tools)
                os.symlink(sys.executable, os.path.join(tools, "python"))
                os.symlink(os.path.abspath(guest.LULL), os.path.join(tools, "lull"))
                environment = {**self.host.environment, "GITHUB_RUN_ID": f"ci{number}",
                               "PATH": tools + os.pathsep + os.environ["PATH"],
                               "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
                               "LULL_SIM_CONFIG": "kernel_us=20"}
                os.mkdir(os.path.join(folder, "code"))
                code = os.path.join(folder, "code")
                statuses = []
                for kind, step in workflow_steps():
                    if kind == "run":
                        done = guest.execute(["bash", "-e", "-c", step], environment, cwd=code)
                        statuses.append(done.status)
                        printed = done.stdout
                    elif "checkout" in step:
                        check_out(code, base if "base_ref" in step else pull_request)
                self.assertEqual(statuses, [0, 0, status], printed)
                self.assertEqual("::error file=" in printed, status == 1, printed)
                with open(os.path.join(code, "lull.sarif"), encoding="utf-8") as file:
                    results = json.load(file)["runs"][0]["results"]
                self.assertEqual(len(results), status)

    def test_what_proves_nothing_is_no_baseline(self):
        self.run_job("nothing", NAIVE, program=["true"])
        path = os.path.join(self.folder, "nothing.json")
        done = guest.execute([guest.LULL, "check", "nothing", "--write-baseline", path],
                             self.host.environment)
        self.assertEqual(done.status, 3)
        self.assertIn("this is no baseline: nothing was recorded", done.stderr)
        self.assertFalse(os.path.exists(path))
        self.check(0, "mended", "--write-baseline", path)
        with open(path, encoding="utf-8") as file:
            whole = file.read()

        def changed(change):
            baseline = json.loads(whole)
            (run,) = baseline["runs"]
            runs = change(run, run["processes"][0])
            return json.dumps({**baseline, "runs": runs or baseline["runs"]})

        for text, why in (("", "it is no JSON"), ("[]", "it has no lull_baseline"),
                          ('{"lull_baseline": 2}', "reads version 1"),
                          ('{"lull_baseline": 1, "runs": []}', "it has no run"),
                          ('{"lull_baseline": 1, "runs": [{"whole": 3}]}', "not whole"),
                          (whole[:len(whole) // 2], "it is no JSON"),
                          (whole.replace('"pieces"', '"parts"'), "pieces"),
                          (whole.replace('"number"', '"x"', 1), None),
                          ('{"lull_baseline": 1, "runs": [{"whole": ' + "[" * 200_000 +
                           "]" * 200_000 + "}]}", "it is too deep"),
                          (changed(lambda run, _: [run, run]), "a run is there twice"),
                          (changed(lambda run, process: process.update(pid=-5)), "a number"),
                          (changed(lambda run, process: process.update(rank=1 << 40)),
                           "a number"),
                          (changed(lambda run, process: process.update(dropped=1.5)),
                           "a number"),
                          (changed(lambda run, _: run.update(processes_left_out=-1)),
                           "a number"),
                          (changed(lambda run, process: process["steps"][3].__setitem__(
                              1, -1)), "a number"),
                          (changed(lambda run, process: process["steps"][3].__setitem__(
                              2, 1e300)), "a number")):
            with self.subTest(why):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = guest.execute([guest.LULL, "check", "mended", "--baseline", path,
                                      "--fail-if", NEW_SYNC], self.host.environment)
                if why is None:
                    self.assertIn(done.status, (0, 3))
                    continue
                self.assertEqual(done.status, 3, done.stderr)
                self.assertIn(why, done.stderr)
        for bad, why in ((os.path.join(self.folder, "none.json"), "cannot be read"),
                         (self.folder + "/", "is no file"), ("/dev/zero", "is no file")):
            done = guest.execute([guest.LULL, "check", "mended", "--baseline", bad,
                                  "--fail-if", NEW_SYNC], self.host.environment)
            self.assertEqual(done.status, 3, done.stderr)
            self.assertIn(why, done.stderr)

    def test_a_sync_that_moved_to_a_folder_of_the_same_checkout_is_new(self):
        script = os.path.join(self.folder, "checkout", "compared.py")
        os.makedirs(os.path.dirname(script))
        with open(PROGRAM, encoding="utf-8") as file:
            text = file.read().replace("os.path.dirname(os.path.abspath(__file__))",
                                       repr(os.path.dirname(PROGRAM)))
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        program = [sys.executable, script, str(STEPS)]
        self.run_job("checkout/a", NAIVE, program=program)
        self.run_job("checkout/b", NAIVE, program=program)
        ids = {job["name"]: job["id"] for job in json.loads(guest.execute(
            [guest.LULL, "jobs", "--json", "--top", "0"], self.host.environment).stdout)["jobs"]}
        red = self.checked(1, ids["checkout/b"], "--baseline", ids["checkout/a"],
                           "--fail-if", NEW_SYNC)
        (part,) = red["rules"][0]["parts"]
        self.assertEqual(part["change"], "moved")

    def test_a_sync_that_moved_to_another_file_is_red_though_its_old_line_is_allowed(self):
        allow = ("--allow", f"job/metrics.py:{LINE}: the mean is printed in every step")
        allowed = self.checked(0, "naive", "--fail-if", ANY_SYNC, *allow)
        (rule,) = allowed["rules"]
        self.assertEqual((rule["verdict"], rule["value"]), ("passed", 0))
        self.assertIn("the mean is printed in every step",
                      [part["allowed"] for part in rule["parts"]])
        red = self.checked(1, "moved", "--fail-if", ANY_SYNC, *allow)
        (part,) = [part for part in red["rules"][0]["parts"] if part["value"] == 1]
        self.assertTrue(part["site"]["file"].endswith("/job/helpers.py"), part)
        self.assertIsNone(part["allowed"])
        self.assertIn("is of no sync point", " ".join(red["warnings"]))
        red = self.checked(1, "moved", "--baseline", "naive", "--fail-if", NEW_SYNC, *allow)
        (part,) = red["rules"][0]["parts"]
        self.assertEqual(part["change"], "moved")
        self.assertTrue(part["moved_from"].endswith(f"/job/metrics.py:{LINE}"), part)

    def test_what_was_not_seen_cannot_be_judged(self):
        self.run_job("empty", NAIVE, program=["true"])
        self.run_job("lost", MENDED, program=[
            "sh", "-c", f"{UNDECLARED} > /dev/null; exec {sys.executable} {PROGRAM} {STEPS}"])
        self.run_job("host", MENDED, gpu="host")
        for job, rule, why in (("empty", ANY_SYNC, "nothing was recorded"),
                               ("empty", "step_ms > 1e9", "nothing was recorded"),
                               ("lost", ANY_SYNC, "were lost"),
                               ("host", "sync.wasted_percent > 99", "no GPU truth"),
                               ("host", "gpu.idle_percent > 99", "no GPU truth"),
                               ("mended", "memory.torch_cuda.peak_mib > 1e9",
                                "nothing is known")):
            with self.subTest(job=job, rule=rule):
                answer = self.checked(3, job, "--fail-if", rule)
                self.assertEqual((answer["verdict"], answer["exit_status"]),
                                 ("cannot_judge", 3))
                self.assertIn(why, answer["rules"][0]["reason"])
        # Of the host all was seen; a rule that fails is not covered by one that cannot tell.
        self.check(0, "host", "--fail-if", ANY_SYNC)
        self.check(1, "naive", "--fail-if", ANY_SYNC, "--fail-if",
                   "memory.torch_cuda.peak_mib > 1")
        self.check(3, "mended", "--baseline", "empty", "--fail-if", NEW_SYNC)
        too_few = self.checked(3, "mended", "--baseline", "naive",
                               "--fail-if", "step_ms.change_percent > 1e6")
        # On a machine that is busy with others the steps may not even settle.
        self.assertRegex(too_few["rules"][0]["reason"], "too few runs|did not settle")

    def test_without_a_gpu_what_the_host_does_is_judged_and_nothing_else(self):
        self.run_job("cpu", NAIVE, gpu="host", program=[sys.executable, "-c", HOST_ONLY])
        self.check(0, "cpu", "--fail-if", "host.gc.ms_per_step > 10000")
        self.check(1, "cpu", "--fail-if", "host.gc.ms_per_step > 0")
        self.check(1, "cpu", "--fail-if", "step_ms >= 0")
        for rule in (ANY_SYNC, "sync.wasted_percent > 2", "gpu.idle_percent > 2"):
            answer = self.checked(3, "cpu", "--fail-if", rule)
            self.assertRegex(answer["rules"][0]["reason"], "no GPU (call|truth)")

    def test_numbers_are_those_of_lull_diff(self):
        compared = json.loads(guest.execute(
            [guest.LULL, "diff", "mended", "naive", "--json"], self.host.environment).stdout)
        (new,) = compared["sync_points"]["new"]
        metrics = ("calls_per_step", "blocked_ms_per_step", "wasted_ms_per_step")
        rules = [f"--fail-if=sync.{metric}(new) >= 0" for metric in metrics]
        answer = self.checked(1, "naive", "--baseline", "mended", *rules)
        # Of a (new) one in all steady steps of the job, and not only in those of both.
        by_metric = {rule["metric"]: rule["value"] for rule in answer["rules"]}
        self.assertEqual(by_metric["sync.calls_per_step"], new["b_calls_per_step"])
        if answer["runs"][0]["steps"] == compared["b"][0]["steps"]:
            self.assertEqual([rule["value"] for rule in answer["rules"]],
                             [new["b_" + metric] for metric in metrics])
        self.assertGreaterEqual(answer["runs"][0]["steps"], compared["b"][0]["steps"])

    def test_shares_are_those_of_the_report_in_the_time_of_the_steps(self):
        def asked(*arguments):
            done = guest.execute([guest.LULL, *arguments, "--json", "--top", "0"],
                                 self.host.environment)
            self.assertEqual(done.status, 0, done.stderr)
            return json.loads(done.stdout)

        answer = self.checked(1, "naive", "--fail-if", "gpu.idle_percent >= 0",
                              "--fail-if", "sync.wasted_percent >= 0",
                              "--fail-if", "step_ms >= 0")
        value = {rule["metric"]: rule["value"] for rule in answer["rules"]}
        steps = asked("steps", "naive")["steps"]
        steps = steps[-answer["runs"][0]["steps"]:]
        took = sorted(step["duration_ms"] for step in steps)
        self.assertAlmostEqual(value["step_ms"],
                               (took[(len(took) - 1) // 2] + took[len(took) // 2]) / 2,
                               places=6)
        since = steps[0]["start_ms"]
        time = ("--since", f"{since:.6f}ms", "--until",
                f"{steps[-1]['start_ms'] + steps[-1]['duration_ms']:.6f}ms")
        gpu = asked("gaps", "naive", *time)["gpu"]
        wasted = sum(row["wasted_ms"] for row in asked("syncs", "naive", *time)["sync_points"])
        self.assertGreater(wasted, 0)
        self.assertAlmostEqual(value["gpu.idle_percent"],
                               100 * gpu["idle_ms"] / gpu["traced_ms"], places=2)
        self.assertAlmostEqual(value["sync.wasted_percent"],
                               100 * wasted / gpu["traced_ms"], places=2)

    def test_rules_stand_beside_the_code(self):
        path = os.path.join(self.folder, "project")
        os.makedirs(path, exist_ok=True)
        file = os.path.join(path, "lull.toml")

        def write(text):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)

        write(f'top = 5\n\n[check]\nfail-if = [\n  "{ANY_SYNC}",  # none\n]\n\n'
              f'[[check.allow]]\nfile = "job/metrics.py"\nfunction = "wait"\n'
              f'reason = "logs"\nuntil = 2999-01-31\n')
        self.check(0, "naive", cwd=path)
        self.check(1, "moved", cwd=path)
        self.check(1, "moved", "--rules", file)
        # Other verbs read the same file.
        done = guest.execute([guest.LULL, "syncs", "naive"], self.host.environment, cwd=path)
        self.assertEqual((done.status, done.stderr), (0, ""))
        for text, said in (
                ('[check]\nfail-if = ["sync.wasted_percent > 2", "sync.calls > 0"]\n',
                 "lull.toml:2: there is no such metric"),
                ('[check]\nfail-iff = []\n', "lull.toml:2: unknown key check.fail-iff; did"),
                (f'[check]\nfail-if = ["{ANY_SYNC}"]\n[[check.allow]]\nfile = "a.py"\n',
                 "it needs a reason"),
                ('[check]\nfail-if = ["a\n', "lull.toml:2: "),
                ('[check]\n', "there is no rule")):
            with self.subTest(text):
                write(text)
                self.assertIn(said, self.check(2, "naive", cwd=path).stderr)
        write(f'[check]\nfail-if = ["{ANY_SYNC}"]\n[[check.allow]]\n'
              f'file = "./job/metrics.py"\nreason = "logs"\n')
        self.check(0, "naive", cwd=path)

    def test_rules_that_cannot_be_read_are_not_passed_over(self):
        path = os.path.join(self.folder, "unreadable")
        os.makedirs(path, exist_ok=True)
        file = os.path.join(path, "lull.toml")
        rule = ("mended", "--fail-if", ANY_SYNC)
        for make, said in ((lambda: os.symlink("/no/such", file), "cannot be read"),
                           (lambda: os.symlink("/dev/zero", file), "no file"),
                           (lambda: os.mkfifo(file), "no file")):
            make()
            self.assertIn(said, self.check(2, *rule, cwd=path).stderr)
            os.unlink(file)
        # Another file than was meant, or one that was cut off.
        with open(file, "w", encoding="utf-8") as out:
            out.write("top = 5\n")
        self.check(0, *rule, cwd=path)
        self.assertIn("no [check]", self.check(2, *rule, "--rules", file).stderr)

    def test_an_answer_that_nobody_gets_is_neither_passed_nor_failed(self):
        for job in ("mended", "naive"):
            for json_too in ((), ("--json",)):
                with self.subTest(job=job, json=json_too), open("/dev/full", "wb") as full:
                    done = subprocess.run(
                        [guest.LULL, "check", job, "--fail-if", ANY_SYNC, *json_too],
                        env=self.host.environment, stdin=subprocess.DEVNULL, stdout=full,
                        stderr=subprocess.PIPE, text=True, timeout=180)
                    self.assertEqual(done.returncode, 3)
                    self.assertEqual(done.stderr.count("cannot write the answer"), 1)

    def test_wrong_command_lines(self):
        for arguments, said in (
                (("naive",), "there is no rule"),
                (("--fail-if", ANY_SYNC), "JOB is required"),
                (("naive", "--fail-if", "sync.wasted_percant > 2"),
                 "; did you mean 'sync.wasted_percent'?\n  sync.wasted_percant > 2\n"
                 "  ^^^^^^^^^^^^^^^^^^^\n"),
                (("naive", "--fail-if", "step_ms > 2ms"), "\n            ^^^\n"),
                (("naive", "--fail-if", NEW_SYNC), "add --baseline JOB"),
                (("naive", "--fail-if", ANY_SYNC, "--allow", "metrics.py:3"), "REASON"),
                (("naive", "--fail-if", ANY_SYNC, "--rules", "no-such"), "cannot be read"),
                (("naive", "--baseline", "naive", "--fail-if", NEW_SYNC), "named twice"),
                (("naive", "--fail-if", ANY_SYNC, "--annotations", "gitlab"), "gitlab")):
            with self.subTest(arguments):
                done = self.check(2, *arguments)
                self.assertEqual(done.stdout, "")
                self.assertIn(said, done.stderr)
        # A job that is not there is no red program.
        done = guest.execute([guest.LULL, "check", "no-such", "--fail-if", ANY_SYNC],
                             self.host.environment)
        self.assertEqual((done.status, done.stdout), (3, ""))

    def test_files_of_an_earlier_run_do_not_stand_for_a_job_that_is_not_there(self):
        path = os.path.join(self.folder, "earlier")
        os.makedirs(path, exist_ok=True)
        arguments = ("--fail-if", ANY_SYNC, "--junit", "lull.xml", "--sarif", "lull.sarif")
        self.check(0, "mended", *arguments, cwd=path)
        done = guest.execute([guest.LULL, "check", "no-such", *arguments],
                             self.host.environment, cwd=path)
        self.assertEqual(done.status, 3, done.stderr)
        suites = xml.etree.ElementTree.parse(os.path.join(path, "lull.xml")).getroot()
        self.assertEqual(suites.get("errors"), "1")
        self.assertIn("no-such", suites.find(".//error").text)
        with open(os.path.join(path, "lull.sarif"), encoding="utf-8") as file:
            (run,) = json.load(file)["runs"]
        self.assertFalse(run["invocations"][0]["executionSuccessful"])

    def test_files_of_an_earlier_run_do_not_stand_for_a_wrong_command_line(self):
        path = os.path.join(self.folder, "wrong")
        os.makedirs(path, exist_ok=True)
        files = ("--junit", "lull.xml", "--sarif=lull.sarif")
        baseline = os.path.join(path, "naive.json")
        self.check(0, "naive", "--write-baseline", baseline)
        for wrong in (("mended", "--fail-if", "sync.wasted_percant > 2"),
                      ("mended", "--fail-if", NEW_SYNC),
                      ("mended", "--fail-if", ANY_SYNC, "--rules", "no-such"),
                      ("mended,", "--fail-if", ANY_SYNC),
                      ("mended",),
                      ("--fail-if", ANY_SYNC),
                      ("mended", "--fail-if", ANY_SYNC, "--no-such-option"),
                      ("mended", "--fail-if", ANY_SYNC, "--annotations", "gitlab"),
                      ("mended", "naive", "--fail-if", ANY_SYNC),
                      ("mended", "--write-baseline", baseline)):
            with self.subTest(wrong):
                self.check(0, "mended", "--fail-if", ANY_SYNC, *files, cwd=path)
                self.check(2, *wrong, *files, cwd=path)
                self.assert_no_verdict(path)
        # Also where a file that the verb reads is wrong.
        self.check(0, "mended", "--fail-if", ANY_SYNC, *files, cwd=path)
        with open(os.path.join(path, "lull.toml"), "w", encoding="utf-8") as file:
            file.write("tpo = 3\n")
        os.chmod(path, 0o755)
        self.check(2, "mended", "--fail-if", ANY_SYNC, *files, cwd=path)
        self.assert_no_verdict(path)
        os.unlink(os.path.join(path, "lull.toml"))
        # What was not there is not made, and --help is no wrong command line.
        os.unlink(os.path.join(path, "lull.xml"))
        self.check(0, "mended", "--fail-if", ANY_SYNC, "--sarif", "lull.sarif", cwd=path)
        self.check(2, "mended", *files, cwd=path)
        self.assertFalse(os.path.exists(os.path.join(path, "lull.xml")))
        self.check(0, "mended", "--fail-if", ANY_SYNC, *files, cwd=path)
        self.check(0, "--help", *files, cwd=path)
        with open(os.path.join(path, "lull.sarif"), encoding="utf-8") as file:
            self.assertTrue(json.load(file)["runs"][0]["invocations"][0]["executionSuccessful"])

    def assert_no_verdict(self, path):
        suites = xml.etree.ElementTree.parse(os.path.join(path, "lull.xml")).getroot()
        self.assertEqual((suites.get("tests"), suites.get("errors")), ("1", "1"))
        with open(os.path.join(path, "lull.sarif"), encoding="utf-8") as file:
            (run,) = json.load(file)["runs"]
        self.assertFalse(run["invocations"][0]["executionSuccessful"])

    def test_writing_a_baseline_is_no_verdict(self):
        path = os.path.join(self.folder, "both.json")
        for judging in (("--fail-if", ANY_SYNC), ("--allow", "a.py: it is so"), ("--json",),
                        ("--junit", "a.xml"), ("--sarif", "a.sarif"), ("--rules", "a.toml"),
                        ("--annotations", "github"), ("--baseline", "mended"), ("--metrics",)):
            with self.subTest(judging):
                done = self.check(2, "naive", "--write-baseline", path, *judging)
                self.assertRegex(done.stderr, "--write-baseline excludes|excludes --write-baseline")
                self.assertFalse(os.path.exists(path))
        self.check(2, "naive", "--metrics", "--fail-if", ANY_SYNC)
        # What no --baseline would read as a file.
        self.assertIn("write ./main", self.check(2, "naive", "--write-baseline", "main").stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "main")))

    def test_a_job_that_failed_has_not_passed(self):
        self.run_job("failed", MENDED, status=3, program=[
            "sh", "-c", f"{sys.executable} {PROGRAM} {STEPS}; exit 3"])
        path = os.path.join(self.folder, "failed")
        files = ("--junit", "lull.xml", "--sarif", "lull.sarif")
        rule = ("failed", "--fail-if", ANY_SYNC)
        told = self.check(3, *rule, *files, cwd=path).stdout
        self.assertIn("ended with exit status 3", told.splitlines()[0])
        self.check(3, "mended", "--baseline", "failed", "--fail-if", NEW_SYNC)
        done = guest.execute([guest.LULL, "check", "failed", "--write-baseline", "./f.json"],
                             self.host.environment, cwd=path)
        self.assertEqual(done.status, 3, done.stderr)
        self.assertIn("this is no baseline: failed (", done.stderr)
        self.check(0, "failed", "--write-baseline", "./f.json", "--allow-failed-job", cwd=path)
        self.check(3, "mended", "--baseline", "./f.json", "--fail-if", NEW_SYNC, cwd=path)
        self.check(0, "mended", "--baseline", "./f.json", "--fail-if", NEW_SYNC,
                   "--allow-failed-job", cwd=path)
        self.run_job("killed", MENDED, status=137, program=[
            "sh", "-c", f"{sys.executable} {PROGRAM} {STEPS}; kill -9 $$"])
        self.check(3, "killed", "--fail-if", ANY_SYNC)
        # Who wants it judged all the same reads it in a note, of all files.
        self.check(0, *rule, "--allow-failed-job", *files, cwd=path)
        suites = xml.etree.ElementTree.parse(os.path.join(path, "lull.xml")).getroot()
        self.assertIn("ended with exit status 3", suites.find(".//system-out").text)
        with open(os.path.join(path, "lull.sarif"), encoding="utf-8") as file:
            (run,) = json.load(file)["runs"]
        (invocation,) = run["invocations"]
        notes = invocation["toolExecutionNotifications"]
        self.assertTrue(invocation["executionSuccessful"])
        self.assertEqual({note["level"] for note in notes}, {"note"})
        self.assertIn("ended with exit status 3",
                      " ".join(note["message"]["text"] for note in notes))
        with open(os.path.join(path, "lull.toml"), "w", encoding="utf-8") as file:
            file.write("[check]\nallow-failed-job = true\n")
        self.check(0, *rule, cwd=path)
        with open(os.path.join(path, "lull.toml"), "w", encoding="utf-8") as file:
            file.write("[check]\nallow-failed-job = 1\n")
        self.assertIn("true or false", self.check(2, *rule, cwd=path).stderr)

    def test_a_rank_that_waits_is_not_diluted_by_the_others(self):
        for rank in range(4):
            folder = os.path.join(self.folder, "ranks", "job", str(rank))
            os.makedirs(folder)
            with open(os.path.join(folder, "metrics.py"), "w", encoding="utf-8") as file:
                file.write(NAIVE if rank == 2 else MENDED)
        self.run_job("ranks", NAIVE, program=[
            "sh", "-c", "for r in 0 1 2 3; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=4 "
            f"METRICS=$METRICS/$r {sys.executable} {PROGRAM} {STEPS} & done; wait"])
        (rule,) = self.checked(1, "ranks", "--fail-if", ANY_SYNC)["rules"]
        self.assertEqual((rule["value"], rule["of"]), (1, "rank 2"))
        red = self.check(1, "ranks", "--fail-if", ANY_SYNC).stdout
        self.assertIn("measured 1, rank 2", red)

    def test_a_sync_that_came_after_the_steps_of_the_baseline_has_not_passed(self):
        # A wait after another: steps do not get longer by it.
        late = NAIVE + """        if step >= 100:
            again(self.device)

def again(device):
    device.cuda.cudaStreamSynchronize(device.stream)
"""
        self.run_job("late", late, program=[sys.executable, PROGRAM, "300"])
        # New, or by the few steps of the baseline too seldom to say so.
        done = guest.execute([guest.LULL, "check", "late", "--baseline", "naive", "--fail-if",
                              NEW_SYNC, "--json"], self.host.environment, cwd=self.folder)
        self.assertIn(done.status, (1, 3), done.stdout)
        answer = json.loads(done.stdout)
        self.assertGreater(answer["runs"][0]["steps"], 140)
        changes = [part["change"] for part in answer["rules"][0]["parts"]
                   if part["site"]["function"] == "again"]
        self.assertIn(changes, (["new"], ["rare"]))

    def test_memory_from_before_a_job_was_armed_is_not_none(self):
        go, ready = (os.path.join(self.folder, name) for name in ("go", "ready"))
        metrics = f"""
import ctypes, os, time

class Mean(object):
    def __init__(self, device):
        self.device = device
        self.allocate(64)
        open({ready!r}, "w").close()
        while not os.path.exists({go!r}):
            time.sleep(0.01)

    def allocate(self, mib):
        assert self.device.cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()),
                                           ctypes.c_size_t(mib << 20)) == 0

    def update(self, step):
        if step == 0:
            self.allocate(1)
"""
        armed = []

        def arm():
            guest.wait_until(lambda: os.path.exists(ready))

            def is_armed():  # not before the collector knows of it
                armed[:] = [guest.execute([guest.LULL, "arm", "late-armed"],
                                          self.host.environment)]
                return armed[0].status == 0
            guest.wait_until(is_armed)
            open(go, "w", encoding="utf-8").close()

        thread = threading.Thread(target=arm)
        thread.start()
        try:
            self.run_job("late-armed", metrics, options=("--dormant",))
        finally:
            thread.join()
        self.assertEqual(armed[0].status, 0, armed[0].stderr)
        rule = ("--fail-if", "memory.cuda.peak_mib > 32")
        (judged,) = self.checked(3, "late-armed", *rule)["rules"]
        self.assertIn("not recorded from its start", judged["reason"])
        self.check(0, "late-armed", "--fail-if", "host.gc.ms_per_step > 1e9")
        # One that was recorded from its start is judged.
        self.run_job("armed", metrics)
        self.check(1, "armed", *rule)

    def test_what_an_imported_trace_lacks_has_not_passed(self):
        def x(category, name, start, end, tid=7, **arguments):
            return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid,
                    "ts": start, "dur": end - start, "args": arguments}

        events = []
        for step in range(STEPS):
            at = 1000 * step
            events += [
                x("user_annotation", f"ProfilerStep#{step}", at, at + 990),
                x("cuda_runtime", "cudaLaunchKernel", at + 10, at + 20, correlation=step + 1),
                x("kernel", "k", at + 30, at + 500, 3, device=0, stream=3,
                  correlation=step + 1)]
        path = os.path.join(self.folder, "trace.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms",
                       "deviceProperties": [{"id": 0, "name": "GPU"}],
                       "traceEvents": events}, file)
        done = guest.execute([guest.LULL, "import", path, "--name", "trace"],
                             self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        for metric in (*(f"host.{wait}.ms_per_step" for wait in (
                "gil", "gc", "data", "lock", "io", "comm", "sleep", "process")),
                       *(f"cause.{cause}.percent" for cause in (
                           "gc", "data", "gil_wait", "run_queue", "host_wait"))):
            with self.subTest(metric):
                (rule,) = self.checked(3, "trace", "--fail-if", f"{metric} > 0")["rules"]
                self.assertIn("cannot tell it: ", rule["reason"])
        self.check(0, "trace", "--fail-if", ANY_SYNC, "--fail-if", "gpu.idle_percent > 90")
        for verb, said in (("waits", "host_wait"), ("gc", "pauses of Python's collector")):
            told = guest.execute([guest.LULL, verb, "trace"], self.host.environment).stdout
            self.assertRegex(told, f"Cannot be told: .*{said}")
            self.assertNotRegex(told, "No wait|0 pauses|No pause")

    def test_files_for_others(self):
        folder = os.path.join(self.folder, "naive")
        arguments = ("naive", "--fail-if", ANY_SYNC, "--fail-if",
                     "memory.torch_cuda.peak_mib > 1", "--junit", "junit.xml", "--sarif",
                     "lull.sarif", "--annotations", "github")
        lines = self.check(1, *arguments, cwd=folder).stdout.splitlines()
        (error,) = [line for line in lines if line.startswith("::error file=")]
        self.assertTrue(error.startswith(
            f"::error file=job/metrics.py,line={LINE},title=lull check::"), error)
        suites = xml.etree.ElementTree.parse(os.path.join(folder, "junit.xml")).getroot()
        self.assertEqual({key: suites.get(key) for key in ("tests", "failures", "errors")},
                         {"tests": "2", "failures": "1", "errors": "1"})
        self.assertIn("metrics.py", suites.find(".//failure").text)
        with open(os.path.join(folder, "lull.sarif"), encoding="utf-8") as file:
            (run,) = json.load(file)["runs"]
        place = run["results"][0]["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]),
                         ("job/metrics.py", LINE))
        self.assertFalse(run["invocations"][0]["executionSuccessful"])
        # A file that cannot be written is no success.
        done = guest.execute(
            [guest.LULL, "check", "mended", "--fail-if", ANY_SYNC, "--junit",
             "/proc/no/such"], self.host.environment)
        self.assertEqual(done.status, 3, done.stderr)

    def test_names_that_a_program_made_up_steer_nobody(self):
        folder = self.run_job("hostile", HOSTILE)
        done = self.check(1, "hostile", "--fail-if", ANY_SYNC, "--junit", "junit.xml",
                          "--sarif", "lull.sarif", "--annotations", "github", cwd=folder)
        self.assertNotIn("\x1b", done.stdout)
        (error,) = [line for line in done.stdout.splitlines() if line.startswith("::")]
        properties = error.split("::")[1]
        self.assertEqual(properties.count(","), 2, error)  # file, line, title
        self.assertIn("%3A%3Aerror%3A%3Ax", properties)
        suites = xml.etree.ElementTree.parse(os.path.join(folder, "junit.xml")).getroot()
        self.assertIn("<b>&", suites.find(".//failure").text)
        with open(os.path.join(folder, "lull.sarif"), encoding="utf-8") as file:
            (result,) = json.load(file)["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]
        self.assertRegex(place["uri"], r"^file:///x/[A-Za-z0-9/._~%-]*/a%2Cb%3Ac\.py$")

    def test_the_answer_is_as_its_schema_says(self):
        schema = guest.execute([guest.LULL, "schema", "check"], self.host.environment).stdout
        answer = self.check(1, "moved", "--baseline", "naive", "--fail-if", NEW_SYNC,
                            "--fail-if", "gpu.idle_percent > 99.9", "--json").stdout
        script = ("import json, sys, jsonschema\n"
                  "schema, answer = map(json.loads, sys.stdin.read().split('\\0'))\n"
                  "jsonschema.Draft202012Validator(schema).validate(answer)\n")
        done = subprocess.run(["/usr/bin/python3", "-c", script], text=True,
                              input=schema + "\0" + answer, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

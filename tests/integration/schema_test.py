#!/usr/bin/env python3
"""`lull schema`: what every verb prints with --json of real jobs is what its schema says, by
a validator that others wrote (jsonschema). Schemas are closed, so a key too many fails, too."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import guest
import loader_test
import page_test

try:
    import jsonschema
except ImportError:
    if os.path.samefile(sys.executable, "/usr/bin/python3"):
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # the distribution's has it

PUPPETS = loader_test.PUPPETS
SIM = os.environ["LULL_SIM"]
OF_JOBS = ("report", "gaps", "hot", "kernels", "ops", "steps", "data", "regions", "ranks", "stacks",
           "syncs", "waits", "gc", "allocs", "memory")
# Where a job has nothing of the kind, they say so on stderr and print no JSON.
MAY_BE_UNTOLD = ("hot", "data", "regions", "ranks", "stacks")


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.schemas = {}
        for verb in cls.text("schema").split():
            schema = json.loads(cls.text("schema", verb))
            jsonschema.Draft202012Validator.check_schema(schema)
            cls.schemas[verb] = jsonschema.Draft202012Validator(schema)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def text(cls, *arguments, status=(0,)):
        done = guest.execute([guest.LULL, *arguments], cls.host.environment)
        if done.status not in status:
            raise AssertionError((arguments, done.status, done.stderr))
        return done.stdout

    def run_job(self, name, *command, gpu="continuous", sim="kernel_us=300", options=()):
        """Records it to its end; the answers of all verbs are held against their schemas.
        Returns them."""
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--gpu", gpu, "--overhead-budget",
             "100", *options, "--", *command],
            {**self.host.environment, "LD_LIBRARY_PATH": SIM, "LULL_SIM_CONFIG": sim})
        self.assertEqual(done.status, 0, done.stderr)
        return self.check_all(name)

    def ask(self, verb, *arguments, status=(0,)):
        answer = json.loads(self.text(verb, *arguments, "--json", status=status))
        errors = list(self.schemas[verb].iter_errors(answer))
        self.assertEqual(
            [(list(error.absolute_path), error.message[:300]) for error in errors[:3]], [],
            (verb, arguments))
        return answer

    def check_all(self, job):
        answers = {}
        for verb in OF_JOBS:
            if verb in MAY_BE_UNTOLD and not self.text(verb, job, "--json", status=(0, 1)):
                continue
            self.ask(verb, job, "--by", "stack", "--top", "3")
            answers[verb] = self.ask(verb, job, "--phase", "all", "--top", "50")
        return answers

    def test_every_verb_that_prints_json_has_one(self):
        listed = re.findall(r"^  ([a-z]+) ", self.text("--help").split("Subcommands:")[-1]
                            .split("Example:")[0], re.MULTILINE)
        self.assertIn("report", listed)
        prints_json = {verb for verb in listed
                       if re.search("^  --json ", self.text(verb, "--help"), re.MULTILINE)}
        self.assertEqual(prints_json, set(self.schemas))

    def test_a_word_that_is_no_verb_is_a_wrong_command_line(self):
        for word, said in (("synks", "did you mean 'syncs'?"), ("run", "lists those that do")):
            done = guest.execute([guest.LULL, "schema", word], self.host.environment)
            self.assertEqual((done.status, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)

    def test_a_schema_refuses_what_is_not_so(self):
        """The validator is at work: a key more, a key less, a number that is text."""
        answer = self.run_job("refused", "python3", "-c", "import gc; gc.collect()")["gc"]
        self.assertTrue(answer["gc_pauses"])
        broken = [json.loads(json.dumps(answer)) for _ in range(4)]
        broken[0]["more"] = 1
        del broken[1]["losses"]
        broken[2]["total_ms"] = "1"
        broken[3]["gc_pauses"][0]["site"]["line"] = None
        for one in broken:
            self.assertFalse(self.schemas["gc"].is_valid(one))

    def test_of_a_traced_job(self):
        answers = self.run_job("turns", "python3", os.path.join(PUPPETS, "patterns.py"), "sync")
        for verb, rows in (("gaps", "gaps"), ("gaps", "causes"), ("kernels", "kernels"),
                                           ("kernels", "copies"), ("syncs", "sync_points"),
                           ("report", "devices"), ("report", "processes"), ("hot", "roles"),
                           ("allocs", "allocation_sites")):
            self.assertTrue(answers[verb][rows], (verb, rows))
        self.assertIsNotNone(answers["gaps"]["gpu"]["busy_ms"])
        self.ask("gaps", "turns", "--since", "100ms", "--until", "10m")

    def test_of_a_job_without_gpu_truth(self):
        answers = self.run_job("untraced", "python3", os.path.join(PUPPETS, "patterns.py"),
                               "sync", "3", gpu="host")
        self.assertIsNone(answers["gaps"]["gpu"]["busy_ms"])
        self.assertIsNone(answers["syncs"]["sync_points"][0]["wasted_ms"])

    def test_of_steps_and_growing_memory(self):
        answers = self.run_job("grows", "python3", os.path.join(PUPPETS, "memory.py"), "device",
                               sim="memory_gib=1", options=("--step-range", "step"))
        self.assertTrue(answers["steps"]["steps"])
        self.assertTrue(answers["memory"]["memory"][0]["growth"]["sites"])
        self.assertTrue(answers["memory"]["malloc_retries"])

    def test_of_operators(self):
        answers = self.run_job(
            "operators", os.path.join(os.environ["LULL_PUPPETS"], "operators_host13"))
        self.assertTrue(answers["ops"]["ops"])

    def test_of_an_imported_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(page_test.trace(["load", "</script>"]), file)
            self.text("import", "--quiet", path, "--name", "imported")
        answers = self.check_all("imported")
        self.assertEqual(answers["gaps"]["job"]["imported"]["format"], "torch.profiler")
        self.assertTrue(answers["steps"]["steps"])

    @unittest.skipUnless(loader_test.torch_python(), "no PyTorch here")
    def test_of_a_data_loader(self):
        with tempfile.TemporaryDirectory() as folder:
            answers = self.run_job(
                "loads", loader_test.torch_python(), "-W", "ignore",
                os.path.join(PUPPETS, "loader.py"), "--workers", "1", "--start", "fork",
                "--file", os.path.join(folder, "spans"))
        self.assertTrue(answers["data"]["loaders"])
        self.assertTrue(answers["data"]["lines"])

    def test_of_jobs_and_of_what_is_told_to_them(self):
        with subprocess.Popen(
                [guest.LULL, "run", "--quiet", "--name", "running", "--", "sleep", "100"],
                env=self.host.environment, stdin=subprocess.DEVNULL) as job:
            try:
                guest.wait_until(lambda: any(
                    one["name"] == "running" for one in self.ask("jobs")["jobs"]))
                self.assertFalse(self.ask("disarm", "running")["armed"])
                self.assertEqual(self.ask("arm", "running", "--for", "10s")["for_ms"], 10000)
                self.assertIsNone(self.ask("arm", "running")["for_ms"])
                for verb, *tags in (("tag", "naive"), ("pin",), ("unpin",), ("untag", "naive"),
                                    ("pin",)):
                    (marked,) = self.ask(verb, "running", *tags)["jobs"]
                self.assertEqual((marked["tags"], marked["pinned"]), ([], True))
                self.check_all("running")
                self.assertGreater(self.ask("fleet")["totals"]["live_jobs"], 0)
            finally:
                job.terminate()

    def test_of_processes_and_of_the_machine(self):
        self.ask("ps", "--all")
        own = self.ask("ps", str(os.getpid()), status=(0, 1))
        self.assertEqual(own["process"]["pid"], os.getpid())
        with subprocess.Popen(["true"]) as gone:
            pass
        self.assertEqual(set(self.ask("ps", str(gone.pid), status=(1,))["process"]),
                         {"pid", "can_attach", "obstacles", "notes"})
        self.assertTrue(self.ask("doctor", status=(0, 1))["checks"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

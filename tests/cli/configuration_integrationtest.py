"""Defaults from lull.toml: what wins over what, what is refused, and what is not trusted."""

import json
import os

import lull_case
from lull_case import LullCase


class Configuration(LullCase):
    def setUp(self):
        super().setUp()
        self.environment["XDG_CONFIG_HOME"] = os.path.join(self.folder, "config")
        self.project = os.path.join(self.folder, "project")
        os.makedirs(os.path.join(self.folder, "config", "lull"), mode=0o755)
        os.mkdir(self.project, mode=0o755)
        self.users = os.path.join(self.folder, "config", "lull", "lull.toml")
        self.here = os.path.join(self.project, "lull.toml")
        self.collector = self.start_collector()

    def write(self, path, text, mode=0o644):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def ask(self, *arguments, **options):
        return self.lull(*(arguments or ("syncs",)), cwd=self.project, **options)

    def refused(self, *parts, arguments=("syncs",)):
        done = self.ask(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def coloured(self, *arguments):
        done = self.ask("syncs", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return "\x1b" in done.stdout

    def test_the_command_line_wins_over_the_folders_file_and_that_over_the_users(self):
        self.assertFalse(self.coloured())
        self.write(self.users, 'color = "always"\n')
        self.assertTrue(self.coloured())
        self.write(self.here, 'color = "never"\ntop = 3\n')
        self.assertFalse(self.coloured())
        self.assertTrue(self.coloured("--color=always"))

    def test_the_environment_wins_over_files(self):
        self.write(self.users, 'color = "always"\ncollector = "unix:/nowhere"\n')
        self.environment["NO_COLOR"] = "1"
        self.assertFalse(self.coloured())  # and $LULL_COLLECTOR is the one that answered

    def test_the_users_file_names_the_collector(self):
        del self.environment["LULL_COLLECTOR"]
        self.write(self.users, f'collector = "{self.collector}"\n')
        self.assertEqual(self.ask("jobs").returncode, 0)
        self.assertEqual(json.loads(self.ask("syncs", "--json").stdout)["job"]["name"],
                         "resnet")

    def test_a_file_says_what_measuring_may_cost(self):
        del self.environment["LULL_COLLECTOR"]
        self.write(self.here, "overhead-budget = 5\n")
        for given, percent in ((), 5), (("--overhead-budget", "2"), 2):
            done = self.ask("run", "--name", "n", "--quiet", *given, "--",
                            "python3", "-c", "import gc; gc.collect()")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            report = json.loads(self.ask("report", "n", "--json").stdout)
            self.assertEqual(report["overhead"]["budget_percent"], percent)

    def test_a_token_is_not_sent_to_another_collector_than_its_own(self):
        token = os.path.join(self.folder, "token")
        self.write(token, "secret", 0o644)  # which --token-file would refuse
        self.write(self.users, f'collector = "h:1"\ntoken-file = "{token}"\n')
        self.assertEqual(self.ask("jobs", "--collector", self.collector).returncode, 0)
        self.assertEqual(self.ask("jobs").returncode, 0)  # by $LULL_COLLECTOR
        del self.environment["LULL_COLLECTOR"]
        self.refused(f"chmod 600 {token}", arguments=("jobs",))

    def test_a_file_beside_the_code_does_not_say_where_data_goes(self):
        for key in ("collector", "token-file", "tls-ca", "insecure-plain-tcp"):
            with self.subTest(key=key):
                self.write(self.here, f'{key} = "x"\n')
                self.refused(f"lull.toml: {key}: where events and tokens go")

    def test_a_file_that_others_may_write_is_passed_over(self):
        self.write(self.here, 'color = "always"\n', 0o666)
        for path in (self.here, self.project):
            done = self.ask()
            self.assertEqual(done.returncode, 0)
            self.assertIn("lull.toml is passed over: it is not yours, or others may", done.stderr)
            self.assertNotIn("\x1b", done.stdout)
            os.chmod(self.here, 0o644)
            os.chmod(self.project, 0o777)
        os.chmod(self.project, 0o755)
        self.assertTrue(self.coloured())
        os.unlink(self.here)
        os.mkfifo(self.here)  # does not wait for a writer
        self.assertIn("lull.toml is passed over: it is no file", self.ask().stderr)

    def test_what_cannot_be_read_is_passed_over_and_said(self):
        self.write(self.here, "")
        os.truncate(self.here, 1 << 30)
        self.assertIn("lull.toml is passed over: it is larger than", self.ask().stderr)
        os.unlink(self.here)
        for path in (self.here, self.users):
            os.symlink(path, path)
            self.assertIn(f"{path[-9:]} is passed over: Too many levels", self.ask().stderr)
            os.unlink(path)
        self.assertEqual(self.ask().stderr, "")

    def test_errors_name_file_and_key(self):
        for text, *parts in (("tpo = 3\n", "lull.toml: tpo: unknown key; did you mean 'top'"),
                             ("top = \"few\"\n", "lull.toml: top: "),
                             ("by = \"file\"\n", "lull.toml: by: "),
                             ("schedule = \"wait=ten\"\n", "lull.toml: schedule: wait=ten is"),
                             ("gpu = \"on\"\n", "lull.toml: gpu: \"on\" is none of host"),
                             ("[run]\ntop = 3\n", "run.top: there are no sections")):
            with self.subTest(text=text):
                self.write(self.here, text)
                self.refused(*parts)
        self.write(self.here, "\x1b[31mtop = 3\n")
        self.refused("lull.toml: ?[31mtop: unknown key")  # it cannot steer the terminal
        self.assertEqual(self.ask("syncs", "--help").returncode, 0)

    def test_the_keys_are_those_that_the_page_names(self):
        for key in ("overhead-budget", "gpu", "schedule", "step-range", "quiet", "no-source",
                    "sample-steps", "top", "by",
                    "color", "no-pager", "collector", "token-file", "tls-ca",
                    "insecure-plain-tcp"):
            self.write(self.users, f"{key} = []\n")
            done = self.ask("jobs")
            self.assertNotIn("unknown key", done.stderr, key)
            self.assertIn(key, done.stderr)
        for other in ("json", "name", "no-samples", "must-record", "help", "version", "job", ""):
            self.write(self.users, f"{other} = 1\n")
            self.assertEqual(self.ask("jobs").returncode, 2, other)

    def test_a_job_is_started_whatever_a_file_says(self):
        for text, *said in (("tpo = 3\nquiet = true\n", "lull.toml: tpo: unknown key"),
                            ("overhead-budget = 0\nquiet = true\n", "overhead-budget: "),
                            ("{{{", "lull.toml: {{{"),
                            ("[run]\nquiet = true\n", "there are no sections"),
                            ("collector = \"h:1\"\n", "where events and tokens go"),
                            ("gpu = \"host\"\nschedule = \"wait=9\"\n", "schedule: it is of gpu"),
                            ("a = 1\nb = 2\n", "lull.toml: a: unknown", "lull.toml: b: unknown")):
            with self.subTest(text=text):
                self.write(self.here, text)
                done = self.ask("run", "--", "sh", "-c", "echo out; exit 7")
                self.assertEqual((done.returncode, done.stdout), (7, "out\n"))
                for part in (*said, "left out; the job is started"):
                    self.assertIn(part, done.stderr)
                quiet = text.endswith("\nquiet = true\n") and "[run]" not in text
                self.assertEqual("lull: resnet" in done.stderr, not quiet, "what is right counts")
                # The user's own words refuse as ever.
                done = self.ask("run", "--overhead-budget", "0", "--", "echo", "out")
                self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_a_collector_that_cannot_be_is_no_reason_not_to_start_a_job(self):
        job = ("--", "sh", "-c", "echo out; exit 7")
        variables = {"LULL_COLLECTOR": "nonsense"}, {"LULL_TOKEN_FILE": "/etc/passwd"}, {}
        for more in variables:
            with self.subTest(**more):
                environment = {**self.environment, **more}
                if not more:
                    del environment["LULL_COLLECTOR"]
                    self.write(self.users, 'collector = "far.invalid:1"\n')
                done = self.ask("run", *job, env=environment)
                self.assertEqual((done.returncode, done.stdout), (7, "out\n"), done.stderr)
                self.assertIn("the job runs without being recorded", done.stderr)
                done = self.ask("run", "--must-record", *job, env=environment)
                self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
                self.assertEqual(self.ask("jobs", env=environment).returncode, 2)

    def test_gpu_and_schedule_go_together(self):
        # Each alone is right; the two of different places would be refused.
        self.write(self.users, 'gpu = "host"\nquiet = true\n')
        self.write(self.here, 'schedule = "wait=50,warmup=1,active=3"\n')
        for flags in ((), ("--gpu", "continuous"), ("--schedule", "wait=9")):
            with self.subTest(flags=flags):
                done = self.ask("run", *flags, "--", "echo", "done")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_the_jobs_own_words_are_not_lulls(self):
        self.write(self.here, 'gpu = "host"\nquiet = true\ntpo = 1\n')
        done = self.ask("run", "echo", "--gpu", "0", "--help")
        self.assertEqual((done.returncode, done.stdout), (0, "--gpu 0 --help\n"))
        self.assertIn("unknown key", done.stderr)

    def test_a_schedule_is_of_a_mode(self):
        self.write(self.users, 'schedule = "wait=50,warmup=1,active=3"\nquiet = true\n')
        for flags in ((), ("--gpu", "host")):
            done = self.ask("run", *flags, "--", "echo", "done")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))


if __name__ == "__main__":
    lull_case.main()

#!/usr/bin/env python3
"""`import lull`: rows are those of --json, errors are those of the command, by every CPython
that there is, without any package."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import guest
import interpreters
import loader_test

ROOT = loader_test.ROOT
FOLDER = os.path.join(ROOT, "python")
sys.path.insert(0, FOLDER)
import lull


class Module(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.before = dict(os.environ)
        os.environ.update(cls.host.environment)
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", "turns", "--tag", "slow", "--gpu", "continuous", "--",
             "python3", os.path.join(loader_test.PUPPETS, "patterns.py"), "sync"],
            {**cls.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": "kernel_us=300"})
        assert done.status == 0, done.stderr
        done = guest.execute([guest.LULL, "run", "--quiet", "--name", "quick", "--", "true"],
                             cls.host.environment)
        assert done.status == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        os.environ.clear()
        os.environ.update(cls.before)
        cls.host.close()

    def json(self, verb, *arguments):
        done = guest.execute([guest.LULL, verb, *arguments, "--json"], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)

    def load(self, job="turns", **options):
        return lull.load(job, binary=guest.LULL, **options)

    def test_rows_are_those_of_the_command(self):
        run = self.load()
        self.assertEqual(run.id, run.job["id"])
        self.assertEqual(repr(run), f"<lull.Run turns ({run.id[:8]})>")
        with self.assertRaisesRegex(lull.Error, "no process waited for another rank"):
            self.assertIsNone(run.ranks)
        for name, (verb, key) in lull._LISTS.items():
            if name == "ranks":
                continue
            with self.subTest(name=name):
                rows = getattr(run, name)
                self.assertIsInstance(rows, lull.Rows)
                self.assertEqual(rows, self.json(verb, "turns", "--top", "0")[key])
        for name in ("gaps", "sync_points", "kernels", "hot_lines", "processes"):
            self.assertTrue(getattr(run, name), name)
        report = self.json("report", "turns", "--top", "0")
        for name in lull._PARTS:
            self.assertEqual(getattr(run, name), report[name], name)

    def test_every_name_is_in_the_schema(self):
        for name, (verb, key) in lull._LISTS.items():
            schema = lull.schema(verb, binary=guest.LULL)
            self.assertEqual(schema["properties"][key]["type"], "array", name)
        report = lull.schema("report", binary=guest.LULL)
        self.assertLessEqual(set(lull._PARTS), set(report["properties"]))

    def test_options_are_those_of_the_command(self):
        run = self.load(by="stack", phase="all", top=2)
        same = self.json("syncs", "turns", "--by", "stack", "--phase", "all", "--top", "2")
        self.assertEqual(run.sync_points, same["sync_points"])
        same = self.json("syncs", "turns", "--by", "function", "--phase", "all", "--top", "1")
        self.assertEqual(run.answer("syncs", by="function", top=1), same)
        self.assertEqual(run.rows("syncs", "sync_points", by="function", top=1),
                         same["sync_points"])

    def test_jobs(self):
        self.assertEqual([job["name"] for job in lull.jobs(binary=guest.LULL)],
                         ["quick", "turns"])
        self.assertEqual([job["name"] for job in lull.jobs(binary=guest.LULL, tag="slow")],
                         ["turns"])
        self.assertEqual(lull.load(binary=guest.LULL).job["name"], "quick")

    def test_fleet(self):
        told = lull.fleet(binary=guest.LULL, name="turns")
        self.assertEqual([job["name"] for job in told["jobs"]], ["turns"])
        self.assertEqual(told["store"], "collector")
        for tags, jobs in (("slow", 1), (["slow"], 1), (["slow", "none"], 0)):
            self.assertEqual(lull.fleet(binary=guest.LULL, tag=tags)["totals"]["jobs"], jobs)
        self.assertEqual(lull.fleet(binary=guest.LULL, since="1h")["totals"]["jobs"], 2)

    def test_errors_are_those_of_the_command(self):
        with self.assertRaises(lull.Error) as caught:
            self.load("nothing of that name")
        self.assertEqual(caught.exception.exit_code, 1)
        self.assertIn('no job "nothing of that name"', str(caught.exception))
        with self.assertRaises(lull.WrongUsage) as caught:
            self.load(since="yesterday")
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("'yesterday' is no time", str(caught.exception))
        with self.assertRaises(lull.WrongUsage):
            self.load(no_such_option=1)
        with self.assertRaises(lull.Error) as caught:
            self.load("--html=/tmp/page.html")
        self.assertIn("no job", str(caught.exception))
        with self.assertRaises(lull.Error) as caught:
            self.load("quick").hot_lines  # nothing to tell is an error of the command, too
        self.assertTrue(str(caught.exception).startswith("lull hot: "), caught.exception)
        with self.assertRaises(lull.WrongUsage) as caught:
            self.load().answer("no_such_verb")
        with self.assertRaises(lull.Error) as caught:
            lull.load("turns", binary="/nowhere/lull")
        self.assertIsNone(caught.exception.exit_code)
        self.assertIn("/nowhere/lull cannot be run: No such file", str(caught.exception))
        with self.assertRaises(lull.Error) as caught:
            self.load(collector="unix:/nowhere/collector.sock")
        self.assertIn("/nowhere/collector.sock", str(caught.exception))

    def test_by_every_interpreter(self):
        code = ("import lull, sys; run = lull.load('turns'); print(len(run.sync_points));"
                "assert 'pandas' not in sys.modules and 'numpy' not in sys.modules")
        found = interpreters.with_test_suite() or {"": sys.executable}
        count = len(self.json("syncs", "turns", "--top", "0")["sync_points"])
        environment = {**self.host.environment, "PYTHONPATH": FOLDER,
                       "PATH": f"{os.path.dirname(guest.LULL)}:{os.environ['PATH']}"}
        for series, python in found.items():
            done = guest.execute([python, "-W", "error", "-c", code], environment)
            self.assertEqual((done.status, done.stdout, done.stderr), (0, f"{count}\n", ""),
                             series)

    def test_a_data_frame_where_pandas_is(self):
        """A stand-in for pandas tells what it is given; without one it is said what is
        missing."""
        code = ("import lull; frame = lull.load('turns').sync_points.to_dataframe();"
                "print(type(frame).__name__, frame[0]['api'])")
        environment = {**self.host.environment,
                       "PATH": f"{os.path.dirname(guest.LULL)}:{os.environ['PATH']}"}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pandas.py")
            for source, status, said in (
                    ("def json_normalize(rows):\n    return rows\n", 0, "list cuda"),
                    ("raise ImportError('none')\n", 1, "pip install pandas")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source)
                done = guest.execute([sys.executable, "-B", "-c", code],
                                     {**environment, "PYTHONPATH": f"{FOLDER}:{folder}"})
                self.assertEqual(done.status, status, done.stderr)
                self.assertIn(said, done.stdout + done.stderr)

    def test_without_the_command_it_says_what_to_do(self):
        code = ("import lull\ntry:\n    lull.load()\nexcept lull.Error as error:\n"
                "    print(error)")
        with tempfile.TemporaryDirectory() as folder:  # a Python whose scripts are elsewhere
            os.mkdir(os.path.join(folder, "empty"))
            done = subprocess.run(
                [sys.executable, "-c", "import sysconfig\n"
                 f"sysconfig.get_path = lambda *_: {folder!r}\n" + code],
                env={"PYTHONPATH": FOLDER, "PATH": os.path.join(folder, "empty"),
                     "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("install lull's wheel", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""`lull report --html`: one file that no name of the program breaks out of, with the very
numbers of `lull report --json`, that asks nobody for anything."""

import base64
import hashlib
import html.parser
import json
import os
import re
import stat
import tempfile
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIM = os.environ["LULL_SIM"]
HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>",
           "'\"`${alert(1)}\\", "\u2028\u2029", "\u202eflip", "\x00\x1b[31m", "]]>&lt;b&gt;"]


class Page(html.parser.HTMLParser):
    """What a browser would make of the file: elements, policy, scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.policy, self.open = [], [], "", None
        self.feed(text)
        self.close()
        scripts = [text for (tag, _), text in self.texts if tag == "script"]
        self.data, self.script = json.loads(scripts[0]), scripts[1]
        (self.style,) = [text for (tag, _), text in self.texts if tag == "style"]

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag in ("script", "style"):
            self.open = (tag, attributes)
            self.texts.append((self.open, ""))

    def handle_endtag(self, tag):
        if self.open and tag == self.open[0]:
            self.open = None

    def handle_data(self, data):
        if self.open:
            self.texts[-1] = (self.open, self.texts[-1][1] + data)


def with_frames(value, frames):
    """The page's data with stacks as the JSON of the verbs has them."""
    if isinstance(value, list):
        return [with_frames(one, frames) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: ([frames[number] for number in one] if key in ("stack", "native_stack")
                  else with_frames(one, frames)) for key, one in value.items()}


def trace(names):
    """A made-up trace of torch.profiler whose functions, kernels and steps have these
    names: a loop of 60 steps, each with a gap and a sync."""
    def x(category, name, start, end, tid=4000, **arguments):
        return {"ph": "X", "cat": category, "name": name, "pid": 4000, "tid": tid,
                "ts": start, "dur": end - start, "args": arguments}

    events, at = [], 0
    for step in range(60):
        name = names[step % len(names)]
        long = 3000 if step == 40 else 0
        events += [
            x("user_annotation", f"ProfilerStep#{step}", at, at + 990 + long),
            x("python_function", f"train.py(20): {name}", at + 5, at + 980 + long),
            x("cuda_runtime", "cudaLaunchKernel", at + 10, at + 20, correlation=2 * step + 1),
            x("kernel", name, at + 20, at + 120, 7, correlation=2 * step + 1, device=0, stream=7,
              grid=[8, 1, 1], block=[128, 1, 1]),
            x("cuda_runtime", "cudaStreamSynchronize", at + 30, at + 125),
            x("cuda_runtime", "cudaLaunchKernel", at + 600 + long, at + 610 + long,
              correlation=2 * step + 2),
            x("kernel", "gemm", at + 610 + long, at + 900 + long, 7, correlation=2 * step + 2,
              device=0, stream=7, grid=[8, 1, 1], block=[128, 1, 1])]
        at += 1000 + long
    return {"schemaVersion": 1, "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_751_410_836_000_000_000,
            "deviceProperties": [{"id": 0, "name": names[0][:60], "numSms": 8}],
            "traceEvents": events}


class Pages(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.folder = tempfile.TemporaryDirectory(prefix="lull-t-")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()
        cls.folder.cleanup()

    def lull(self, *arguments, status=0, **variables):
        done = guest.execute([guest.LULL, *arguments],
                             {**self.host.environment, **variables})
        self.assertEqual(done.status, status, (arguments, done.stdout[-2000:], done.stderr))
        return done

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def page_of(self, job, *arguments):
        self.lull("report", job, "--html", self.path("page.html"), *arguments)
        with open(self.path("page.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertLess(len(text.encode()), 3_000_000)
        return Page(text)

    def ask(self, verb, job, *arguments):
        return json.loads(self.lull(verb, job, "--json", *arguments).stdout)

    def imported(self, names, name="trace.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(trace(names), file)
        return self.lull("import", "--quiet", self.path(name)).stdout.strip()

    def check_harmless(self, page):
        """No element beside the page's own, no source outside, and a policy that allows
        its own script alone."""
        self.assertEqual([tag for tag, _ in page.elements],
                         ["html", "head", "meta", "meta", "meta", "meta", "meta", "title", "link",
                          "style", "body", "noscript", "p", "code", "div", "script", "script"])
        for tag, attributes in page.elements:
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on"), (tag, attributes))
                if name in ("src", "href"):
                    self.assertEqual(value, "data:,")
        rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
        self.assertEqual(rules["default-src"], "'none'")
        self.assertEqual(rules["base-uri"], "'none'")
        self.assertEqual(rules["form-action"], "'none'")
        self.assertEqual(rules["require-trusted-types-for"], "'script'")
        for rule, text in (("script-src", page.script), ("style-src", page.style)):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertEqual(rules[rule], f"'sha256-{digest}'")
        self.assertNotRegex(page.script + page.style, r"https?://|innerHTML|\beval\b|@import")

    def check_numbers(self, page, job):
        data = with_frames(page.data, page.data["frames"])
        self.assertTrue(data["complete"])
        self.assertEqual(data["report"], self.ask("report", job, "--top", "100"))
        for verb, key, rows in (("steps", "steps", "steps"), ("hot", "hot", "lines"),
                                ("ops", "operators", "ops"), ("regions", "regions", "regions"),
                                ("data", "data", "lines")):
            self.assertEqual(data[key][rows], self.ask(verb, job, "--top", "100")[rows], verb)
        # What the timeline has in bins is what the causes have in all, to its ticks.
        timeline = data["timeline"]
        tick_ms = timeline["tick_ns"] / 1e6
        sums = {}
        for band in timeline["bands"]:
            for row in band["causes"]:
                sums[row["cause"]] = sums.get(row["cause"], 0) + sum(row["idle"]) * tick_ms
        everything = self.ask("gaps", job, "--phase", "all")
        for row in everything["causes"]:
            slack = tick_ms * sum(len(band["traced"]) for band in timeline["bands"])
            self.assertAlmostEqual(sums[row["cause"]], row["total_ms"], delta=slack)
        return data

    def is_complete(self, job):
        report = self.ask("report", job)
        return (report["job"]["ended"] and
                report["losses"]["events_stored"] == report["losses"]["events_committed"])

    def test_a_simulated_job(self):
        self.lull("run", "--quiet", "--name", "turns", "--gpu", "continuous", "--", "python3",
                  os.path.join(ROOT, "tests", "puppets", "patterns.py"), "sync",
                  LD_LIBRARY_PATH=SIM, LULL_SIM_CONFIG="kernel_us=400")
        # All of it is in the store: page and JSON are asked for one after the other.
        guest.wait_until(lambda: self.is_complete("turns"))
        page = self.page_of("turns")
        self.check_harmless(page)
        data = self.check_numbers(page, "turns")
        self.assertIn("GPU busy", data["lines"]["busy"])
        gaps = [kind for band in data["timeline"]["bands"] for kind in band["gap_kind"]]
        self.assertEqual(len(gaps), data["timeline"]["gaps"])
        self.assertGreater(len(gaps), 100)
        kinds = data["timeline"]["kinds"]
        sync = [kind for kind in kinds if kind["cause"] == "sync"]
        self.assertTrue(any(frame["function"].endswith("item") for kind in sync
                            for frame in kind["stack"]))

    def test_hostile_names_do_no_harm(self):
        job = self.imported(HOSTILE + ["m" * 1_000_000])
        page = self.page_of(job)
        self.check_harmless(page)
        text = json.dumps(page.data)
        self.assertTrue(re.search(r"m\.\.\. \(cut: [0-9,]+ bytes\)", text))
        self.assertGreater(page.data["cut_names"], 0)
        names = {row["name"] for row in page.data["report"]["kernels"]}
        self.assertIn(HOSTILE[0], names)  # all of it, as text

    def test_an_imported_job_with_a_step_that_stands_out(self):
        job = self.imported(["forward"], "steps.json")
        page = self.page_of(job)
        data = self.check_numbers(page, job)
        self.assertEqual(data["timeline"]["outliers_in_all"], 1)
        (outlier,) = data["timeline"]["outliers"]
        self.assertEqual(outlier["number"], 40)
        self.assertAlmostEqual(outlier["times_median"], 4, delta=0.2)

    def test_a_job_of_another_language_has_a_page_that_says_what_is_not_there(self):
        self.lull("run", "--quiet", "--name", "shell", "--", "sh", "-c", "sleep 0.2")
        why = self.lull("hot", "shell", status=1).stderr
        page = self.page_of("shell")
        self.check_harmless(page)
        self.assertIn("no samples of host threads", page.data["no_samples"])
        self.assertIn(page.data["no_samples"], why)
        self.assertEqual(page.data["hot"]["lines"], [])

    def test_rows_are_as_many_as_asked_for(self):
        job = self.imported([f"kernel_{i}" for i in range(30)], "many.json")
        self.assertEqual(len(self.page_of(job).data["report"]["kernels"]), 31)
        self.assertEqual(len(self.page_of(job, "--top", "7").data["report"]["kernels"]), 7)

    def test_the_file_is_replaced_at_once(self):
        job = self.imported(["forward"], "file.json")
        target, link = self.path("kept.html"), self.path("link.html")
        with open(target, "w", encoding="utf-8") as file:
            file.write("before")
        os.chmod(target, 0o640)
        os.symlink("kept.html", link)
        with open(target, encoding="utf-8") as before:  # who reads it goes on reading it
            self.lull("report", job, "--html", link)
            self.assertEqual(before.read(), "before")
        self.assertTrue(os.path.islink(link))
        with open(target, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("<!DOCTYPE html>"))
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o640)
        self.assertFalse([name for name in os.listdir(self.folder.name)
                          if "unfinished" in name])
        packed = self.path("page.html.gz")  # a page is never packed
        self.lull("report", job, "--html", packed)
        with open(packed, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("<!DOCTYPE html>"))

    def test_to_stdout(self):
        job = self.imported(["forward"], "stdout.json")
        text = self.lull("report", job, "--html", "-").stdout
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        self.assertTrue(text.endswith("</html>\n"))

    def test_what_cannot_be_written_says_why(self):
        job = self.imported(["forward"], "why.json")
        for path, why in ((self.folder.name, "is a folder"),
                          (self.path("none/page.html"), "No such file")):
            done = self.lull("report", job, "--html", path, status=1)
            self.assertRegex(done.stderr, "lull report: .*" + re.escape(why))
        self.assertEqual(self.lull("report", job, "--html", "/dev/full", status=1).stdout, "")
        self.lull("report", job, "--html", "page.html", "--json", status=2)
        self.lull("gaps", job, "--html", "page.html", status=2)


if __name__ == "__main__":
    unittest.main()

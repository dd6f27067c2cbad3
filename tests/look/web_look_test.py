#!/usr/bin/env python3
"""The pages of `lull web` in a headless browser: the way in, the list, a job that goes on, a
comparison; no complaint, and no request to elsewhere."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import browser

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import guest
from page_test import HOSTILE, trace

PICTURES = os.environ.get("LULL_PICTURES")  # a folder: keeps screenshots there
CALLS = """(() => {
  const row = [...document.querySelectorAll('#gc tr.row')][0];
  return row ? row.textContent : '';
})()"""


class WebLook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.folder = tempfile.TemporaryDirectory(prefix="lull-t-")
        for name in ("before", "after"):
            path = os.path.join(cls.folder.name, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(trace(HOSTILE + [name]), file)
            done = guest.execute([guest.LULL, "import", "--quiet", "--name", name, path],
                                 cls.host.environment)
            assert done.status == 0, done.stderr
        cls.server = subprocess.Popen([guest.LULL, "web"], env=cls.host.environment, text=True,
                                      stdout=subprocess.PIPE)
        cls.address = cls.server.stdout.readline().strip()
        cls.browser = browser.Browser(browser.find())
        cls.browser.size(1360, 900)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.kill()
        cls.server.wait()
        cls.server.stdout.close()
        cls.host.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.requests.clear()
        self.browser.complaints.clear()
        self.browser.open(self.address)
        self.browser.frame()

    def tearDown(self):
        self.assertEqual(self.browser.complaints, [])
        own = self.address.partition("?")[0]
        self.assertEqual([url for url in self.browser.requests
                          if not url.startswith(own) and url != "data:,"], [])

    def picture(self, name):
        if PICTURES:
            self.browser.picture(os.path.join(PICTURES, f"{name}.png"))

    def follow(self, selector):
        """Clicks on a link, and waits for the page that it leads to."""
        before = self.browser.run("location.href")
        self.browser.run(f"{selector}.click()")
        guest.wait_until(lambda: self.browser.run("location.href") != before and
                         self.browser.run("document.readyState") == "complete")
        self.browser.frame()

    def row(self, name):
        return (f"[...document.querySelectorAll('#jobs tr.row')].find((row) => "
                f"row.querySelector('a').textContent === '{name}')")

    def test_the_token_leaves_the_address_and_scripts_see_no_cookie(self):
        self.assertRegex(self.browser.run("location.href"), r"^http://127[^?]*/[0-9a-f]{64}/$")
        self.assertEqual(self.browser.run("document.cookie"), "")
        self.assertIn("before", self.browser.run("document.querySelector('#jobs').textContent"))
        self.picture("web_jobs")
        self.browser.run("location.reload()")
        guest.wait_until(lambda: self.browser.run("document.readyState") == "complete")
        self.assertIn("after", self.browser.run("document.querySelector('#jobs').textContent"))

    def test_from_the_list_to_a_job_and_back_and_to_a_comparison(self):
        self.follow(f"{self.row('before')}.querySelector('a')")
        self.assertEqual(self.browser.run("document.querySelector('h1').textContent"), "before")
        self.assertEqual(self.browser.run("document.querySelectorAll('#timeline canvas').length"), 2)
        self.assertIsNone(self.browser.run("document.getElementById('live')"))
        self.follow("[...document.querySelectorAll('nav a')].find((a) => a.textContent === 'All jobs')")
        for name in ("before", "after"):
            self.browser.run(f"{self.row(name)}.querySelector('input').click()")
        self.follow("document.querySelector('a.action')")
        self.assertEqual(self.browser.run("document.querySelector('h1').textContent"), "Comparison")
        size = ("Number.parseFloat(getComputedStyle(document.querySelector('{}')).fontSize)")
        self.assertGreater(self.browser.run(size.format(".verdict")),
                           self.browser.run(size.format("section > h2")))
        self.assertGreater(self.browser.run("document.querySelectorAll('#syncs tr.row').length"), 0)
        self.assertEqual(self.browser.run("document.querySelectorAll('script, img, b').length"), 2)
        self.picture("web_diff")

    def test_a_comparison_as_a_file(self):
        path = os.path.join(self.folder.name, "diff.html")
        done = guest.execute([guest.LULL, "diff", "before", "after", "--html", path],
                             self.host.environment)
        self.assertEqual((done.status, done.stderr), (0, ""))
        self.browser.requests.clear()
        self.browser.open("file://" + path)
        self.browser.frame()
        self.assertEqual(self.browser.run("document.querySelector('h1').textContent"), "Comparison")
        self.assertGreater(self.browser.run("document.querySelectorAll('#syncs tr.row').length"), 0)
        self.assertEqual(self.browser.run("document.querySelectorAll('script, img, b').length"), 2)
        self.assertEqual(self.browser.requests, ["file://" + path])
        self.browser.requests.clear()
        self.browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))")
        self.picture("diff_file")

    def test_rows_of_a_comparison_are_told_apart(self):
        path = os.path.join(self.folder.name, "rows.html")
        done = guest.execute([guest.LULL, "diff", "before", "after", "--html", path],
                             self.host.environment)
        self.assertEqual((done.status, done.stderr), (0, ""))
        with open(path, encoding="utf-8") as file:
            head, mark, rest = file.read().partition('id="lull-data">')
        data, end, tail = rest.partition("</script>")
        data = json.loads(data)
        kernel = ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<%s>"
                  ", std::array<char*, 3ul> >(int, std::array<char*, 3ul>)")
        times = {"a_ms_per_step": 0.0, "b_ms_per_step": 1.0, "low_ms_per_step": None,
                 "high_ms_per_step": None, "a_calls_per_step": 0.0, "b_calls_per_step": 1.0}
        places = [{"file": f"/job/{file}.py", "line": line, "function": "save"}
                  for file, line in (("train", 70), ("saving", 8))]
        syncs = data["diff"]["sync_points"]
        (row, *_) = [one for rows in syncs.values() for one in rows]
        row = {**row, "site": places[1], "a_site": places[0], "b_site": places[1]}
        syncs.update({key: [] for key in syncs}, moved=[row], same=[{**row, "edited": True},
                                                                    {**row, "a_site": places[1]}])
        data["diff"]["kernels"] = [{"name": kernel % of, **times} for of in ("long", "float")]
        data["kernels"] = 40
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + mark + json.dumps(data).replace("<", "\\u003c") + end + tail)
        self.browser.requests.clear()
        self.browser.open("file://" + path)
        self.browser.frame()

        def texts(where):
            return self.browser.run(
                f"[...document.querySelectorAll('{where} tr.row')].map((row) => "
                "[...row.cells].slice(0, 2).map((cell) => cell.textContent))")
        there = "/job/train.py:70 save \u2192 /job/saving.py:8 save"
        self.assertEqual(texts("#syncs"), [["moved", there], ["edited", there],
                                           ["the same", "/job/saving.py:8 save"]])
        self.assertEqual([name for name, _ in texts("#kernels")],
                         [f"vectorized_elementwise_kernel<4, CUDAFunctor_add<{of}>, "
                          "std::array<char*, 3ul> >" for of in ("long", "float")])
        self.assertIn("2 of 40 rows", self.browser.run("document.querySelector('#kernels').textContent"))
        self.browser.requests.clear()

    def test_what_a_comparison_says_of_times(self):
        path = os.path.join(self.folder.name, "cases.html")
        done = guest.execute([guest.LULL, "diff", "before", "after", "--html", path],
                             self.host.environment)
        self.assertEqual((done.status, done.stderr), (0, ""))
        with open(path, encoding="utf-8") as file:
            head, mark, rest = file.read().partition('id="lull-data">')
        data, end, tail = rest.partition("</script>")
        data = json.loads(data)
        runs = data["diff"]["a"]
        known = {"a": 10.0, "b": 8.0, "change_percent": -20.0, "low_percent": -22.5,
                 "high_percent": -17.4, "known": True}
        needs = {**known, "spread_percent": 2.93, "detectable_percent": 18.2,
                 "asked_percent": 2.0, "runs_needed": 58}
        noisy = {**known, "low_percent": -8.7, "high_percent": 528.93, "spread_percent": 42.9,
                 "detectable_percent": 451.2, "asked_percent": 2.0, "runs_needed": None}
        worse = {**known, "b": 12.0, "change_percent": 20.0, "low_percent": 17.0,
                 "high_percent": 23.25}
        unknown = "Median step: A 10.0 ms, B 8.00 ms; -20.00 % (-22.50 to -17.40 %, of these " \
                  "very runs). "
        row = {"kind": "data", "a_ms_per_step": 3.0, "b_ms_per_step": 1.0,
               "low_ms_per_step": -2.5, "high_ms_per_step": -1.5}
        back = {**row, "kind": "gil", "a_ms_per_step": 1.0, "b_ms_per_step": 3.0,
                "low_ms_per_step": 1.5, "high_ms_per_step": 2.5}
        alone = {**back, "kind": "lock", "low_ms_per_step": None, "high_ms_per_step": None}
        for count, step, sentence in (
                (2, known, "Median step: A 10.0 ms, B 8.00 ms; -20.00 % (-22.50 to -17.40 %, "
                           "95 % interval)."),
                (2, worse, "Median step: A 10.0 ms, B 12.0 ms; +20.00 % (+17.00 to +23.25 %, "
                           "95 % interval)."),
                (1, {**known, "known": False},
                 unknown + "One run a side: of times this proves nothing."),
                (2, {**known, "known": False}, unknown + "Of times this proves nothing."),
                (3, needs, " Runs of one program differ by 2.9 %. So many runs show a change of "
                           "18 %; one of 2 % takes about 58 a side."),
                (3, noisy, " (-8.70 to +528.93 %, 95 % interval). Runs of one program differ by "
                           "43 %. So many runs show a change of 451 %."),
                (2, None, None)):
            with self.subTest(sentence):
                data["diff"].update(a=runs * count, b=runs * count, step_ms=step,
                                    host_waits=[row, back, alone])
                with open(path, "w", encoding="utf-8") as file:
                    file.write(head + mark + json.dumps(data).replace("<", "\\u003c") + end + tail)
                self.browser.open("file://" + path)
                self.browser.frame()
                shown = self.browser.run("document.querySelector('#runs').textContent")
                self.assertEqual("Median step" in shown, step is not None)
                self.assertIn(sentence or "Runs", shown)
                waits = self.browser.run("[...document.querySelectorAll('#waits tr.row')].map("
                                         "(one) => [...one.cells].map((cell) => cell.textContent))")
                self.assertEqual({cells[0]: cells[-1] for cells in waits},
                                 {"data": "\u22122.00 ms \u00b1 500 \u00b5s",
                                  "gil": "+2.00 ms \u00b1 500 \u00b5s", "lock": "+2.00 ms"})
        self.browser.requests.clear()

    def test_it_asks_again_after_five_minutes_at_the_latest(self):
        # An answer that took hours, as one does beside which a host slept.
        self.browser.run("{ let asked = 0; const now = performance.now.bind(performance);"
                         " performance.now = () => now() + 3600000 * asked++; }")
        title = "document.getElementById('live').title"
        guest.wait_until(lambda: self.browser.run(title) not in ("", "asks every 2.00 s"))
        self.assertEqual(self.browser.run(title), "asks every 5 min 00 s")

    def test_a_page_goes_on_with_its_job_unless_somebody_is_at_it(self):
        job = subprocess.Popen([guest.LULL, "run", "--quiet", "--name", "runs", "--", "python3",
                                "-c", "import gc, sys\nfor line in sys.stdin:\n    gc.collect()"],
                               env=self.host.environment, stdin=subprocess.PIPE, text=True)

        def collect():
            job.stdin.write("again\n")
            job.stdin.flush()

        def goes_on():
            before = self.browser.run(CALLS)
            return guest.wait_until(lambda: collect() or self.browser.run(CALLS) != before)

        try:
            collect()
            # The list tells of it by itself.
            guest.wait_until(lambda: self.browser.run(f"Boolean({self.row('runs')})"))
            self.follow(f"{self.row('runs')}.querySelector('a')")
            goes_on()
            goes_on()
            self.picture("web_live")
            self.browser.run("document.querySelector('#gc th button').click()")
            shown = self.browser.run(CALLS)
            offer = "document.querySelector('#live button')"
            guest.wait_until(lambda: collect() or self.browser.run(f"Boolean({offer})"))
            self.assertEqual(self.browser.run(CALLS), shown)
            self.browser.run(f"{offer}.click()")
            self.assertNotEqual(self.browser.run(CALLS), shown)
            goes_on()
            goes_on()
            self.check_that_it_asks_seldom()
        finally:
            job.stdin.close()
            job.wait(60)
        guest.wait_until(lambda: self.browser.run("document.getElementById('live') === null"))
        self.assertIn("exit status 0", self.browser.run("document.querySelector('header').textContent"))

    def check_that_it_asks_seldom(self):
        def delay(milliseconds):
            self.browser.call("Network.emulateNetworkConditions", offline=False,
                              latency=milliseconds, downloadThroughput=-1, uploadThroughput=-1)

        def asked():
            return self.browser.run(
                "performance.getEntriesByType('resource').filter((one) => one.name"
                ".endsWith('/data')).map((one) => [one.startTime, one.responseEnd])")

        before = len(asked())
        delay(100)
        guest.wait_until(lambda: len(asked()) > before + 2, seconds=90)
        delay(0)
        pairs = list(zip(asked(), asked()[1:]))
        self.assertGreater(max(ended - began for (began, ended), _ in pairs), 100)
        for (began, ended), (again, _) in pairs:
            self.assertGreater(again - ended, max(1990, 49 * (ended - began)))

    def test_a_page_says_what_it_waits_for_and_goes_on(self):
        listen = f"unix:{self.folder.name}/collector"
        database = os.path.join(self.folder.name, "away.db")
        start = lambda: guest.start_collector(listen, database, self.host.environment)
        collector = start()
        server = subprocess.Popen([guest.LULL, "web", "--collector", listen], text=True,
                                  env=self.host.environment, stdout=subprocess.PIPE)
        try:
            self.browser.open(server.stdout.readline().strip())
            said = lambda: self.browser.run("document.getElementById('live').textContent")
            collector.kill()
            collector.wait()
            guest.wait_until(lambda: "cannot reach the collector" in said())
            collector = start()
            guest.wait_until(lambda: said() == "live")
            server.kill()
            server.wait()
            guest.wait_until(lambda: said() == "lull web does not answer")
        finally:
            for process in (server, collector):
                process.kill()
                process.wait()
            server.stdout.close()
            self.browser.complaints.clear()  # of the answers that failed
            self.browser.requests.clear()


if __name__ == "__main__":
    if browser.find() is None:
        print("SKIPPED: there is no chromium (tests/look/install)", file=sys.stderr)
        sys.exit(77)
    unittest.main()

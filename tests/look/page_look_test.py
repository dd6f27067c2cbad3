#!/usr/bin/env python3
"""The page of `lull report --html` in a headless browser, opened from file: every table
sorted, a gap clicked, stacks unfolded, zoomed to a step, no complaint, no request; and how
long a frame takes with 100 000 gaps."""

import json
import os
import re
import statistics
import sys
import tempfile
import unittest

import browser

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import guest
import same_numbers_test
from page_test import HOSTILE, trace

# A frame of which people see no delay; the machine that tests may be busy.
FRAME_MS = 100
PICTURES = os.environ.get("LULL_PICTURES")  # a folder: keeps screenshots there

# `gc.collect()` is on line 5, and what is below it is hostile.
SOURCE = """import gc

def collect(often):
    # what is before
    gc.collect()
    return "</script><b>bold</b><img src=x onerror=alert(1)>" + "\u202e" + 'x' * 300
    # </pre></div><script>alert(1)</script>

for often in range(20):
    collect(often)
"""

# 40 MiB in blocks of 8 KiB, of which 80 are drawn (none with a chance of e^-80), and one
# block of 1 MiB on another line.
SMALL_BLOCKS = """import ctypes

allocated = ctypes.CDLL(None)._ZN3c1025ProfiledCPUMemoryReporter3NewEPvm
for i in range(5120):
    allocated(None, ctypes.c_void_p(0x100000 + i), ctypes.c_size_t(8192))
allocated(None, ctypes.c_void_p(0x10), ctypes.c_size_t(1 << 20))
"""

GAPS_CENTRE = """(() => {
  const canvas = document.getElementById('timeline-canvas');
  canvas.scrollIntoView({block: 'center', behavior: 'instant'});
  const box = canvas.getBoundingClientRect();
  return [box.left, box.top, box.width, box.height];
})()"""


def many_gaps(path, gaps):
    """A trace with so many gaps, of different lengths."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": '
                   '1751410836000000000, "deviceProperties": [{"id": 0, "name": "GPU"}], '
                   '"traceEvents": [')
        at = 0
        for i in range(gaps + 1):
            wait = 20 + i * 7919 % 83
            events = [
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4000,
                 "tid": 4000, "ts": at, "dur": 4, "args": {"correlation": i + 1}},
                {"ph": "X", "cat": "kernel", "name": f"kernel_{i % 40}", "pid": 0, "tid": 7,
                 "ts": at + 6, "dur": 30, "args": {"correlation": i + 1, "device": 0,
                                                   "stream": 7}}]
            file.write(("," if i else "") + json.dumps(events)[1:-1])
            at += 36 + wait
        file.write("]}")


class PageLook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.folder = tempfile.TemporaryDirectory(prefix="lull-t-")
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.host.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.requests.clear()
        self.browser.complaints.clear()
        self.browser.dark(False)
        self.browser.size(1360, 900)

    def lull(self, *arguments):
        done = guest.execute([guest.LULL, *arguments], self.host.environment)
        self.assertEqual(done.status, 0, (arguments, done.stderr))
        return done.stdout

    def page(self, name, write, *arguments):
        source = os.path.join(self.folder.name, f"{name}.json")
        write(source)
        job = self.lull("import", "--quiet", source).strip()
        path = os.path.join(self.folder.name, f"{name}.html")
        self.lull("report", job, "--html", path, *arguments)
        return path

    def open(self, path):
        self.browser.open(f"file://{path}")
        self.browser.frame()

    def check_quiet(self, path):
        self.browser.frame()
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual(self.browser.requests, [f"file://{path}"])

    def picture(self, name):
        if PICTURES:
            self.browser.picture(os.path.join(PICTURES, f"{name}.png"))

    def write_story(self, names):
        def write(path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(trace(names), file)
        return write

    def test_rows_unfold_to_the_source_that_ran_and_it_is_text(self):
        program = os.path.join(self.folder.name, "quoted.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(SOURCE)
        self.lull("run", "--quiet", "--name", "quoted", "--", "python3", program)
        guest.wait_until(lambda: json.loads(
            self.lull("report", "quoted", "--json"))["job"]["ended"])
        path = os.path.join(self.folder.name, "quoted.html")
        self.lull("report", "quoted", "--html", path)
        self.open(path)
        lines = self.browser.run("""(() => {
          const section = document.getElementById('gc');
          section.querySelector('.fold[aria-expanded="false"]').click();
          section.scrollIntoView({behavior: 'instant'});
          return [...section.querySelectorAll('pre.code .line')].map((line) =>
            [line.className, line.firstChild.textContent, line.lastChild.textContent]);
        })()""")
        wanted = [["line", str(number), text + "\n"]
                  for number, text in list(enumerate(SOURCE.split("\n"), 1))[2:7]]
        wanted[2][0] = "line hit"
        wanted[3][2] = wanted[3][2].replace("\u202e", "<U+202E>")
        self.assertEqual(lines, wanted)
        self.assertEqual(self.browser.run("document.querySelectorAll('b, img, script').length"), 2)
        self.picture("source")
        self.browser.dark(True)
        self.browser.size(375, 800)
        self.browser.frame()
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 375)
        self.picture("source_dark_phone")
        self.check_quiet(path)

    def test_every_table_sorts_both_ways(self):
        path = self.page("story", self.write_story(["forward", "backward"]))
        self.open(path)
        wrong = self.browser.run("""(() => {
          const wrong = [];
          let sorted = 0;
          for (const table of document.querySelectorAll('table')) {
            table.querySelectorAll('th button').forEach((button, column) => {
              for (let turn = 0; turn < 2; ++turn) {
                button.click();
                const order = button.closest('th').getAttribute('aria-sort');
                if (order !== 'ascending' && order !== 'descending') wrong.push([table.id, column]);
                ++sorted;
              }
            });
          }
          return {wrong, sorted, tables: document.querySelectorAll('table').length};
        })()""")
        self.assertEqual(wrong["wrong"], [])
        self.assertGreater(wrong["tables"], 8)
        order = self.browser.run("""(() => {
          const table = document.querySelector('#kernels table');
          const head = [...table.querySelectorAll('th')].findIndex((th) => th.textContent === 'calls');
          table.querySelectorAll('th button')[head].click();
          const read = () => [...table.querySelectorAll('tr.row')].map((row) => Number(row.children[head].textContent));
          const first = read();
          table.querySelectorAll('th button')[head].click();
          return [first, read()];
        })()""")
        self.assertEqual(sorted(order[0], reverse=order[0][0] > order[0][-1]), order[0])
        self.assertEqual(order[0], order[1][::-1])
        self.check_quiet(path)

    def test_lines_of_long_paths_are_on_a_screen_of_1360(self):
        def write(path):
            story = trace(["at::native::(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d"])
            text = json.dumps(story).replace("train.py(20)", "/home/ada/vision/experiments/resnet50/train.py(20)")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        path = self.page("wide", write)
        self.open(path)
        wide = self.browser.run("""[...document.querySelectorAll('#kernels .scroll, #syncs .scroll, #idle .scroll')]
          .filter((box) => box.scrollWidth > box.clientWidth).map((box) => [box.closest('section').id, box.scrollWidth, box.clientWidth])""")
        self.assertEqual(wide, [])
        self.picture("wide")
        self.check_quiet(path)

    def test_tables_filter_and_unfold(self):
        path = self.page("filter", self.write_story(["forward", "backward", "other"]))
        self.open(path)
        rows = self.browser.run("""(() => {
          const fold = document.querySelector('#syncs .fold[aria-expanded]');
          fold.click();
          const stack = document.querySelector('#syncs tr.inner ol.stack');
          const lines = stack ? stack.children.length : 0;
          fold.click();
          return [lines, document.querySelectorAll('#syncs tr.inner').length];
        })()""")
        self.assertGreater(rows[0], 0)
        self.assertEqual(rows[1], 0)
        left = self.browser.run("""(() => {
          const search = document.querySelector('#idle input[type=search]');
          const count = () => document.querySelectorAll('#idle tr.row').length;
          if (!search) return null;
          const all = count();
          search.value = 'sync backward';
          search.dispatchEvent(new Event('input'));
          return [all, count()];
        })()""")
        if left is not None:
            self.assertLess(left[1], left[0])
        self.check_quiet(path)

    def test_a_click_on_a_gap_shows_cause_lines_and_stacks(self):
        path = self.page("click", self.write_story(["forward"]))
        self.open(path)
        self.browser.run("document.getElementById('timeline-canvas').focus()")
        left, top, width, height = self.browser.run(GAPS_CENTRE)
        for key in ("f", "ArrowRight"):
            self.browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
            self.browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.browser.frame()
        by_key = self.browser.run("document.querySelector('.selected').innerText")
        self.assertIn("after the start", by_key)
        # Into one step, where gaps are wide: the second third of it is one.
        self.zoom_to_step(20)
        left, top, width, height = self.browser.run(GAPS_CENTRE)
        self.browser.click(left + width * 0.33, top + 4 + 17 + 15 + 20)
        self.browser.frame()
        told = self.browser.run("document.querySelector('.selected').innerText")
        self.assertIn("in step 20", told)
        self.assertIn("train.py:20", told)
        self.assertIn("Python stack", told)
        self.picture("gap")
        self.check_quiet(path)

    def zoom_to_step(self, number):
        self.browser.run(f"""(() => {{
          const box = document.getElementById('step-box');
          box.value = '{number}';
          box.dispatchEvent(new Event('change'));
        }})()""")
        self.browser.frame()

    def test_zooms_to_a_step_and_back(self):
        path = self.page("zoom", self.write_story(["forward"]))
        self.open(path)
        shown = "document.querySelector('#timeline .controls .right').textContent"
        whole = self.browser.run(shown)
        self.zoom_to_step(40)  # the long one: 4 ms and a margin
        self.assertRegex(self.browser.run(shown), r"^4\.\d+ ms shown")
        left, top, width, height = self.browser.run(GAPS_CENTRE)
        middle = top + height / 2
        self.browser.drag((left + width * 0.4, middle), (left + width * 0.6, middle))
        self.browser.frame()
        self.assertRegex(self.browser.run(shown), r"^(8|9)\d\d \u00b5s shown")
        self.browser.run("document.querySelector('#timeline button[aria-label=\"Show the whole job\"]').click()")
        self.browser.frame()
        self.assertEqual(self.browser.run(shown), whole)
        # The step that stands out leads there, too.
        self.browser.run("document.querySelector('#steps button[aria-label=\"Show step 40\"]').click()")
        self.browser.frame()
        self.assertRegex(self.browser.run(shown), r"^4\.\d+ ms shown")
        self.check_quiet(path)

    def test_one_cause_alone_is_shown_everywhere(self):
        path = self.page("cause", self.write_story(["forward"]))
        self.open(path)
        self.browser.run("""[...document.querySelectorAll('#answers .legend button')]
            .find((button) => button.textContent.includes('sync')).click()""")
        self.browser.frame()
        causes = self.browser.run("[...new Set([...document.querySelectorAll('#idle tr.row .cause')].map((c) => c.textContent))]")
        self.assertEqual(causes, ["Ssync"])
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
        self.assertGreater(len(self.browser.run("[...new Set([...document.querySelectorAll('#idle tr.row .cause')].map((c) => c.textContent))]")), 1)
        self.check_quiet(path)

    def test_hostile_names_do_no_harm(self):
        path = self.page("hostile", self.write_story(HOSTILE + ["m" * 1_000_000]))
        self.open(path)
        self.browser.run("for (const fold of document.querySelectorAll('.fold[aria-expanded]')) fold.click()")
        self.assertEqual(self.browser.run("document.querySelectorAll('script, img, b').length"), 2)
        kernels = self.browser.run("document.querySelector('#kernels').textContent")
        self.assertIn(HOSTILE[0], kernels)
        self.assertIn("<U+202E>flip", kernels)  # as source excerpts have it
        self.assertNotIn("\u202e", self.browser.run("document.getElementById('page').textContent"))
        self.check_quiet(path)

    def test_light_dark_phone_and_paper(self):
        path = self.page("themes", self.write_story(["forward"]))
        background = "getComputedStyle(document.body).backgroundColor"
        self.open(path)
        light = self.browser.run(background)
        self.browser.dark(True)
        dark = self.browser.run(background)
        self.assertNotEqual(light, dark)
        self.browser.run("document.getElementById('theme').click()")
        self.browser.frame()
        self.assertEqual(self.browser.run(background), light)
        self.open(path)  # the choice is kept
        self.assertEqual(self.browser.run(background), light)
        self.browser.run("localStorage.clear()")
        self.browser.size(375, 800, 2, mobile=True)
        self.open(path)
        self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), 375)
        # The line that is to blame is on the screen, and no cell is squeezed to a column of words.
        left, right, height = self.browser.run("""(() => {
          const row = document.querySelector('#idle tr.row');
          row.scrollIntoView({block: 'center', behavior: 'instant'});
          const cell = row.querySelector('td.wide').getBoundingClientRect();
          return [cell.left, cell.right, row.getBoundingClientRect().height];
        })()""")
        self.assertTrue(0 <= left and right <= 375 and height < 140, (left, right, height))
        # The head says where one is.
        self.browser.run("document.getElementById('kernels')"
                         ".scrollIntoView({block: 'start', behavior: 'instant'})")
        current = "document.querySelector('nav a[aria-current=true]')"
        guest.wait_until(lambda: self.browser.run(
            f"(() => {{ const box = {current}.getBoundingClientRect(); return {current}.hash === "
            "'#kernels' && box.left >= 0 && box.right <= 375; })()"))
        paper = self.browser.call("Page.printToPDF")["data"]
        self.assertGreater(len(paper), 20_000)
        self.check_quiet_after(path, times=3)

    def test_it_shows_the_figures_of_the_text_report(self):
        same_numbers_test.record(self.host, self.folder.name, "figures")
        path = os.path.join(self.folder.name, "figures.html")
        self.lull("report", "figures", "--html", path)
        report = json.loads(self.lull("report", "figures", "--json", "--top", "100"))
        # Each cell as the text has it, but for the sign of a millionth.
        text = self.lull("report", "figures", "--top", "100").replace(" us", " \u00b5s")
        self.open(path)
        self.assertIn(self.browser.run("document.querySelector('.verdict + p').textContent")
                      .rstrip("."), " ".join(text.split()))
        shares = self.browser.run("[...document.querySelectorAll('.legend .figure')]"
                                  ".map((figure) => figure.textContent)")
        self.assertEqual(len(shares), len(report["causes"]))
        rows = [share.removesuffix(" of idle").split(" \u00b7 ") for share in shares]
        for table, columns, count in (("idle", (1, 2, 3), len(report["gaps"])),
                                      ("syncs", (2, 3), len(report["sync_points"])),
                                      ("kernels", (1, 2, 3), len(report["kernels"]))):
            cells = self.browser.run(f"[...document.querySelector('#{table} table')"
                                     ".querySelectorAll('tr.row')].map((row) => "
                                     "[...row.cells].map((cell) => cell.textContent.trim()))")
            self.assertEqual(len(cells), min(count, 12), table)  # until "show all"
            rows += [[row[column] for column in columns] for row in cells]
        for row in rows:
            shown = r"(?m)^ +" + r"  +(\S+ %  +)?".join(map(re.escape, row)) + r"(  |$)"
            self.assertRegex(text, shown)
        self.check_quiet(path)

    def test_it_rounds_as_the_text_does(self):
        """Also what lies in the middle of two numbers: printf and JavaScript differ there."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(root, "cli", "html", "assets", "format.js"),
                  encoding="utf-8") as file:
            script = file.read()
        times = [*range(1000, 9995, 5), *range(10_050, 99_950, 50), *range(100_500, 999_500, 500)]
        shown = self.browser.run(f"(() => {{{script}\nreturn {times}.map((ns) => formatMs(ns / 1e6)); "
                                 "})()")
        self.assertEqual(shown, [f"{ns / 1e3:.{digits}f} \u00b5s" for ns in times
                                 for digits in [2 if ns < 9995 else 1 if ns < 99_950 else 0]])

    def test_who_was_late_when(self):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--overhead-budget", "100", "--gpu", "continuous",
             "--name", "late", "--", sys.executable,
             os.path.join(os.path.dirname(HERE), "puppets", "nccl_ranks.py"), "--ranks", "4",
             "--store", os.path.join(self.folder.name, "store"), "--steps", "80", "--late", "2"],
            {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": "kernel_us=200"})
        self.assertEqual((done.status, done.stderr), (0, ""))
        path = os.path.join(self.folder.name, "late.html")
        self.lull("report", "late", "--phase", "all", "--html", path)
        told = json.loads(self.lull("ranks", "late", "--phase", "all", "--json"))
        self.open(path)
        cells = told["late_stretches"]
        self.assertGreater(len(cells), 10)
        board = "document.querySelector('#ranks canvas')"
        self.assertEqual(self.browser.run(f"{board}.dataset.drawn"), str(len(cells)))
        self.assertIn("Rank 2 was late in", self.browser.run(
            "document.querySelector('#ranks p.story').textContent"))
        self.assertEqual(self.browser.run(
            "[...document.querySelectorAll('#ranks tr.row')].map((row) => row.cells[0].textContent)"),
            [str(row["rank"]) for row in told["ranks"]])
        left, top, width = self.browser.run(
            f"(() => {{ {board}.scrollIntoView({{block: 'center', behavior: 'instant'}}); "
            f"const box = {board}.getBoundingClientRect(); return [box.left, box.top, box.width]; }})()")
        worst = max(cells, key=lambda one: one["cost_to_others_ms"])
        looked = told["looked_at"]
        middle = (worst["start_ms"] + worst["duration_ms"] / 2 - looked["start_ms"]) \
            / (looked["end_ms"] - looked["start_ms"])
        at = (left + 66 + middle * (width - 76), top + 18 * (worst["rank"] + 0.5))
        self.browser.mouse("mouseMoved", *at)
        self.assertIn(f"rank {worst['rank']}, ", self.browser.run(
            "document.querySelector('.tip').textContent"))
        self.picture("ranks")
        self.browser.click(*at)
        self.assertTrue(self.browser.run("document.activeElement.id === 'timeline-canvas'"))
        self.check_quiet(path)

    def check_quiet_after(self, path, times):
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual(self.browser.requests, [f"file://{path}"] * times)

    def test_a_job_without_a_gpu_has_answers_of_the_host(self):
        story = trace(["forward"])
        story["traceEvents"] = [event for event in story["traceEvents"]
                                if event["cat"] in ("python_function", "user_annotation")]

        def write(path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(story, file)
        path = self.page("host", write)
        self.open(path)
        self.assertIn("not known", self.browser.run("document.querySelector('.verdict').textContent"))
        self.assertEqual(self.browser.run("document.querySelectorAll('#steps button.link').length"), 0)
        self.assertGreater(self.browser.run("document.querySelectorAll('section.empty').length"), 3)
        self.check_quiet(path)

    def test_what_small_blocks_were_drawn_for_is_marked(self):
        program = os.path.join(self.folder.name, "small.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(SMALL_BLOCKS)
        self.lull("run", "--quiet", "--name", "small", "--", "python3", program)
        path = os.path.join(self.folder.name, "small.html")
        self.lull("report", "small", "--html", path)
        self.open(path)
        rows = json.loads(self.lull("allocs", "small", "--json"))["allocation_sites"]
        self.assertEqual([row["estimated"] for row in rows], [True, False])
        tables = self.browser.run("""Array.from(document.querySelectorAll('table'))
            .filter((table) => /^allocations$|^lines that made/.test(table.getAttribute('aria-label')))
            .map((table) => Array.from(table.querySelectorAll('tr.row')).map((row) =>
              Array.from(row.querySelectorAll('td.num')).map((cell) => cell.textContent.replace(/^\u25b8/, ''))))""")
        self.assertEqual(len(tables), 2)
        for table in tables:
            for cells, small in ((table[0], True), (table[1], False)):
                told = [cell for cell in cells if cell != "0 ns"]  # blocked
                self.assertEqual({cell.startswith("~") for cell in told}, {small}, cells)
        self.assertIn("\u00b1", self.browser.run(
            "document.querySelector('table[aria-label=allocations] abbr').title"))
        self.assertEqual(self.browser.run("""Array.from(document.querySelectorAll('p.note'))
            .filter((note) => note.textContent.startsWith('~ estimated')).length"""), 2)
        self.check_quiet(path)

    def test_a_hundred_thousand_gaps_stay_fluid(self):
        path = self.page("many", lambda source: many_gaps(source, 100_000))
        self.assertLess(os.path.getsize(path), 3_000_000)
        self.open(path)
        data = self.browser.run("JSON.parse(document.getElementById('lull-data').textContent).timeline.gaps")
        self.assertGreater(data, 90_000)
        times = self.browser.run("""(async () => {
          const canvas = document.getElementById('timeline-canvas');
          canvas.focus();
          const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          const times = [];
          for (const key of ['f', ...'wwwwwwwwwwww', ...'dddddddd', ...'ssssssssssss', ...'wwadwwadwwad']) {
            canvas.dispatchEvent(new KeyboardEvent('keydown', {key}));
            await frame();
            times.push(Number(canvas.dataset.drawMs));
          }
          return times;
        })()""")
        print(f"100 000 gaps: a frame takes {statistics.median(times):.1f} ms (median of "
              f"{len(times)}), {max(times):.1f} ms at most; the page {os.path.getsize(path):,} bytes",
              file=sys.stderr)
        self.assertLess(statistics.median(times), FRAME_MS)
        self.check_quiet(path)


if __name__ == "__main__":
    if browser.find() is None:
        print("SKIPPED: there is no chromium (tests/look/install)", file=sys.stderr)
        sys.exit(77)
    unittest.main()

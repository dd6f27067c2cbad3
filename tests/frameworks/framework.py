"""A program of a framework on the simulated device, without lull and under `lull run` in
every way of tracing; and what must be true of each."""

import collections
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"), os.path.join(ROOT, "tests", "sim"),
                os.path.join(ROOT, "tools", "demo_job")]
import checks
import guest
import truth

ON_SIM = os.path.join(HERE, "run_on_sim")
INSTALLED = os.environ.get("LULL_FRAMEWORKS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "frameworks")
WAYS = {"continuous": ["--gpu", "continuous"], "host": ["--gpu", "host"],
        "window": ["--gpu", "window", "--schedule",
                   "skip_first=0ms,wait=50ms,warmup=0ms,active=2s,repeat=0"]}

LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel",
            "cudaGraphLaunch", "cuLaunchKernel", "cuLaunchKernelEx",
            "cuLaunchCooperativeKernel", "cuGraphLaunch"}
SYNCS = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
         "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}
ALLOCATIONS = {"cudaMalloc", "cudaHostAlloc", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemCreate",
               "cuMemMap"}
FREES = {"cudaFree", "cudaFreeHost", "cuMemFree_v2", "cuMemFreeHost", "cuMemRelease",
         "cuMemUnmap"}


class Run:
    """One run of a program: how it went, what lull says, what really happened."""

    def __init__(self, host, framework, way, environment):
        self.host, self.name = host, way
        self.script = os.path.join(HERE, f"{framework}_program.py")
        command = [ON_SIM, framework, "python", self.script]
        # The budget of 100 % is for exactness: on a busy machine the default would thin stacks.
        lull = [guest.LULL, "run", "--quiet", "--overhead-budget", "100", "--name", way,
                *WAYS.get(way, []), "--"]
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            log = os.path.join(folder, "truth")
            self.done = guest.execute(
                (lull if way in WAYS else []) + command,
                {**host.environment, **environment, "LULL_SIM_LOG": log,
                 "PAUSE_S": "1" if way == "window" else "0"}, timeout=600)
            self.truth = truth.load(log)
        if way in WAYS:
            self.report = self.ask("report")
            self.syncs, self.allocs, self.kernels, self.memory, self.gaps = (
                self.ask(verb) for verb in ("syncs", "allocs", "kernels", "memory", "gaps"))

    def ask(self, verb, *options):
        return checks.query(guest.LULL, verb, self.name, *options)

    def called(self, names):
        """{name: how often the program called it}"""
        return collections.Counter(call.name for call in self.truth.calls() if call.name in names)

    def blocking_copies(self):
        """{name: calls}: copies that block by their name, or as the host's memory is pageable;
        of those that moved nothing the memory is not in the log."""
        ops = {op.correlation: op for op in self.truth.ops("copy")}
        blocking = collections.Counter()
        for call in self.truth.calls():
            if "Memcpy" not in call.name or "DtoD" in call.name:
                continue
            op = ops.get(call.correlation)
            if op is None or op.pageable or "Async" not in call.name:
                blocking[call.name] += 1
        return blocking

    def site(self, name):
        with open(self.script) as source:
            return next(number for number, line in enumerate(source, 1)
                        if line.rstrip().endswith(f"# SITE: {name}"))

    def at(self, rows, name, key):
        """{row[key]: calls} of the rows whose site is that line of the program."""
        found = collections.Counter()
        for row in rows:
            if (row["site"]["file"], row["site"]["line"]) == (self.script, self.site(name)):
                found[row[key]] += row["calls"]
        return dict(found)


class FrameworkCase(unittest.TestCase):
    maxDiff = None
    FRAMEWORK = None
    ENVIRONMENT = {}

    @classmethod
    def setUpClass(cls):
        if cls.FRAMEWORK is None:
            raise unittest.SkipTest("what all frameworks have in common")
        if not os.path.exists(os.path.join(INSTALLED, cls.FRAMEWORK, "lull-requirements")):
            message = (f"SKIPPED: no {cls.FRAMEWORK} in {INSTALLED}; "
                       "tests/frameworks/install installs it")
            print(message, file=sys.stderr)
            raise unittest.SkipTest(message)
        cls.host = guest.Host()
        cls.addClassCleanup(cls.host.close)
        os.environ.update(cls.host.environment)
        def run(way):
            return Run(cls.host, cls.FRAMEWORK, way, cls.ENVIRONMENT)

        run("warm up")  # compiles what is kept
        cls.alone = run("alone")
        cls.runs = {way: run(way) for way in WAYS}
        cls.traced = cls.runs["continuous"]

    def each(self, check):
        """Calls check(run) for every run under lull."""
        for way, run in self.runs.items():
            with self.subTest(way):
                check(run)

    def test_the_program_does_not_notice(self):
        self.assertEqual(self.alone.done.status, 0, self.alone.done.stderr)
        def check(run):
            self.assertEqual((run.done.status, run.done.stdout, run.done.stderr),
                             (0, self.alone.done.stdout, self.alone.done.stderr))

        self.each(check)

    def test_nothing_is_lost(self):
        def check(run):
            losses = run.syncs["losses"]
            self.assertEqual((losses["events_lost"], losses["reentered"]), (0, 0), losses)
            self.assertEqual(losses["events_committed"], losses["events_stored"])

        self.each(check)

    def test_every_launch_is_counted(self):
        def check(run):
            really = run.called(LAUNCHES).total()
            self.assertGreater(really, 0)
            self.assertEqual(sum(row["launches"] for row in run.report["processes"]), really)

        self.each(check)

    def test_every_synchronisation_is_counted_also_the_copies_that_block(self):
        def check(run):
            told = collections.Counter()
            for row in run.syncs["sync_points"]:
                told[row["api"]] += row["calls"]
            self.assertEqual(told, run.called(SYNCS) + run.blocking_copies())

        self.each(check)

    def test_the_time_that_calls_blocked_is_the_real_one(self):
        def check(run):
            told = sum(row["blocked_ms"] for row in run.syncs["sync_points"]
                       if row["api"] in SYNCS)
            calls = [call for call in run.truth.calls() if call.name in SYNCS]
            real = sum(call.duration for call in calls) / 1e6
            self.assertLessEqual(abs(told - real), 0.02 * real + 0.02 * len(calls))

        self.each(check)

    def test_every_allocation_and_free_is_counted(self):
        def check(run):
            rows = run.allocs["allocation_sites"]
            self.assertGreater(len(rows), 0)
            self.assertEqual((sum(row["calls"] for row in rows), sum(row["frees"] for row in rows)),
                             (run.called(ALLOCATIONS).total(), run.called(FREES).total()))
            self.assertEqual(run.memory["unknown_frees"], 0)

        self.each(check)

    def test_every_copy_is_known_by_direction_memory_and_bytes(self):
        told = {(row["direction"], row["memory"]): (row["count"], row["bytes"])
                for row in self.traced.kernels["copies"]}
        real = collections.defaultdict(lambda: (0, 0))
        for op in self.traced.truth.all_ops:
            if op.kind not in ("copy", "memset"):
                continue
            on_device = op.kind == "memset" or op.copy == "DtoD"
            memory = None if on_device else "pageable" if op.pageable else "pinned"
            key = (op.copy or "memset", memory)
            real[key] = (real[key][0] + 1, real[key][1] + op.bytes)
        self.assertEqual(told, dict(real))

    def test_every_kernel_is_known_by_name(self):
        told, real = collections.Counter(), collections.Counter()
        for row in self.traced.kernels["kernels"]:
            told[row["name"]] += row["calls"]
        for op in self.traced.truth.ops("kernel"):  # those of graphs, too
            real[op.name] += 1
        # lull's names are demangled.
        self.assertEqual(sorted(told.values()), sorted(real.values()))
        self.assertLessEqual({name for name in real if not name.startswith("_Z")}, set(told))

    def test_all_that_the_gpu_did_is_known_and_all_its_idle_time_has_a_cause(self):
        gpu = self.traced.gaps["gpu"]
        self.assertIsNone(gpu["missing"])
        for what in ("cupti_dropped", "records_lost", "records_bad", "late_operations"):
            self.assertEqual(gpu[what], 0, what)
        busy = busy_ns(self.traced.truth) / 1e6
        self.assertAlmostEqual(gpu["busy_ms"], busy, delta=0.001 * busy)
        causes = sum(row["total_ms"] for row in self.traced.gaps["causes"])
        self.assertAlmostEqual(causes, gpu["idle_ms"], delta=1e-3)
        # Where the first operation comes late, nobody kept what threads did before it.
        first = min(op.start for op in self.traced.truth.all_ops
                    if op.kind in ("kernel", "copy", "memset"))
        (span,) = gpu["spans"]
        start_ms = (first - self.host.start_ns(self.traced.name)) / 1e6 - span["start_ms"]
        self.assertLessEqual(gpu["unknown_ms"], start_ms if start_ms > 3500 else 0)

    def test_windows_see_some_of_it(self):
        run = self.runs["window"]  # its steps pause, so that a window comes
        gpu = run.gaps["gpu"]
        self.assertIsNone(gpu["missing"])
        for what in ("cupti_dropped", "records_lost", "records_bad"):
            self.assertEqual(gpu[what], 0, what)
        self.assertTrue(0 < gpu["kernels"] <= len(list(run.truth.ops("kernel"))), gpu)
        self.assertEqual(gpu["graphs"], 0)  # they are told as what they are made of

    def assert_syncs(self, expected):
        """{site: {api: calls}} in every way of tracing."""
        def check(run):
            self.assertEqual({name: run.at(run.syncs["sync_points"], name, "api")
                              for name in expected}, expected)

        self.each(check)

    def assert_allocations(self, expected):
        """{site: {allocator: calls}}"""
        def check(run):
            self.assertEqual({name: run.at(run.allocs["allocation_sites"], name, "allocator")
                              for name in expected}, expected)

        self.each(check)

    def assert_kernels(self, expected):
        """{site: [(part of a kernel's name, calls)...]}"""
        for name, kernels in expected.items():
            rows = self.traced.at(self.traced.kernels["kernels"], name, "name")
            self.assertEqual(len(rows), len(kernels), (name, rows))
            for part, calls in kernels:
                self.assertIn(calls, [n for row, n in rows.items() if part in row], (part, rows))

    def assert_culprits(self, sites):
        """Idle time for syncs has these lines of the program, and no others."""
        lines = {row["culprit"]["line"] for row in self.traced.gaps["gaps"]
                 if row["cause"] == "sync" and row["culprit"]["file"] == self.traced.script}
        self.assertEqual(lines, {self.traced.site(name) for name in sites})


def busy_ns(log):
    total = reach = 0
    for start, end in sorted((op.start, op.end) for op in log.all_ops
                             if op.kind in ("kernel", "copy", "memset")):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total

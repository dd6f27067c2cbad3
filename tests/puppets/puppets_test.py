"""Every puppet on the simulated device: it runs, and the ground truth shows exactly
what expected.h says. Run by ctest with LULL_PUPPETS and LULL_SIM."""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "sim")]
from expected import expected  # noqa: E402
import truth  # noqa: E402

PUPPETS = os.environ["LULL_PUPPETS"]
SIM = os.environ["LULL_SIM"]
E = expected()
LAUNCHES = ("cudaLaunchKernel", "__cudaLaunchKernel")


def flavours(name):
    """The builds of a C++ puppet; nvcc's exists where nvcc does."""
    built = [name + "_host12", name + "_host13", name + "_nvcc"]
    return [f for f in built if os.path.exists(os.path.join(PUPPETS, f))]


class Puppets(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def environment(self, config=""):
        return dict(
            os.environ,
            LD_LIBRARY_PATH=SIM,
            LULL_SIM_LOG=os.path.join(self.folder, "truth"),
            LULL_SIM_CONFIG=config,
        )

    def run_puppet(self, *command, config=""):
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        done = subprocess.run(
            command,
            env=self.environment(config),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        log = truth.load(os.path.join(self.folder, "truth"))
        self.assertEqual(log.dropped, 0)
        self.assertEqual([c for c in log.calls(nested=True) if c.result or not c.end], [])
        return log

    def puppet(self, name):
        return os.path.join(PUPPETS, name)

    def check_training(self, log):
        kernels = log.ops("kernel")
        self.assertEqual(len(kernels), E["kKernels"])
        self.assertEqual(
            len(log.ops(name="forward_kernel")), E["kSteps"] * E["kForwardKernels"]
        )
        self.assertEqual(
            len(log.ops(name="backward_kernel")), E["kSteps"] * E["kBackwardKernels"]
        )
        launches = [c for c in log.calls() if c.name in LAUNCHES]
        self.assertEqual(len(launches), E["kKernels"])
        # Every kernel names the call that launched it, and starts after it began.
        by_correlation = {c.correlation: c for c in launches}
        for kernel in kernels:
            self.assertGreater(kernel.start, by_correlation[kernel.correlation].start)
        self.assertEqual(len(log.calls("cudaStreamSynchronize")), E["kLossReads"])
        self.assertEqual(len(log.calls("cudaDeviceSynchronize")), E["kDeviceSyncs"])
        self.assertEqual(len(log.calls("cudaEventSynchronize")), E["kEventSyncs"])
        allocations = E["kWorkspaces"] + E["kSetupAllocations"]
        self.assertEqual(len(log.calls("cudaMalloc")), allocations)
        self.assertEqual(len(log.calls("cudaFree")), allocations)
        uploads = [o for o in log.ops("copy") if o.copy == "HtoD"]
        self.assertEqual([o.bytes for o in uploads], [E["kBatchBytes"]] * len(uploads))
        pageable = [o for o in uploads if o.pageable]
        self.assertEqual(len(pageable), E["kPageableUploads"])
        self.assertEqual(len(uploads) - len(pageable), E["kPinnedUploads"])
        downloads = [o for o in log.ops("copy") if o.copy == "DtoH"]
        self.assertEqual([o.bytes for o in downloads], [4] * E["kLossReads"])

    def check_blocking(self, log):
        """With kernels of 500 us the device is 10 ms behind at the end of each step.
        A call never returns before what it waits for; and it did wait, unless the
        host itself was held up for so long, which is the exception."""
        calls = {c.correlation: c for c in log.calls()}
        for op in log.ops("copy"):
            call = calls[op.correlation]
            if op.pageable:
                self.assertGreaterEqual(call.end, op.end)
            else:
                self.assertEqual(call.blocked, 0)
        waits = []
        for call in log.calls("cudaFree")[: E["kWorkspaces"]]:
            before = [o.end for o in log.ops("kernel") if o.submitted < call.start]
            self.assertGreaterEqual(call.end, max(before))
            waits.append(call.blocked)
        self.assertGreater(statistics.median(waits), 5000000)

    def test_every_build_of_the_trainer_does_what_the_header_says(self):
        for name in flavours("trainer"):
            with self.subTest(name):
                # Long kernels: the device is always behind, so that every wait
                # for it is a real one.
                log = self.run_puppet(self.puppet(name), config="kernel_us=500")
                self.check_training(log)
                self.check_blocking(log)

    def test_each_host_build_needs_the_runtime_of_its_name(self):
        for puppet in ("trainer", "threads", "graph"):
            for major in ("12", "13"):
                program = os.path.join(PUPPETS, f"{puppet}_host{major}")
                needed = subprocess.run(["readelf", "-d", program], check=True, text=True,
                                        stdout=subprocess.PIPE).stdout
                self.assertIn(f"[libcudart.so.{major}]", needed, program)

    def test_nvcc_takes_part_where_it_is_installed(self):
        if shutil.which("nvcc") is None:
            self.skipTest("no nvcc: the host compiler's builds stand in")
        self.assertIn("trainer_nvcc", flavours("trainer"))

    def test_the_nvcc_trainer_launches_through_the_entry_that_nvcc_emits(self):
        if "trainer_nvcc" not in flavours("trainer"):
            self.skipTest("no nvcc: the host compiler's builds stand in")
        log = self.run_puppet(self.puppet("trainer_nvcc"))
        names = {c.name for c in log.calls() if c.name in LAUNCHES}
        self.assertEqual(len(names), 1)

    def test_the_python_trainer_does_the_same_on_both_runtimes(self):
        for major in ("12", "13"):
            with self.subTest(major):
                log = self.run_puppet(
                    sys.executable,
                    os.path.join(HERE, "trainer.py"),
                    major,
                    config="kernel_us=500",
                )
                self.check_training(log)
                self.check_blocking(log)

    def test_threads_work_on_streams_of_their_own(self):
        for name in flavours("threads"):
            with self.subTest(name):
                log = self.run_puppet(self.puppet(name))
                kernels = log.ops("kernel")
                self.assertEqual(len(kernels), E["kThreads"] * E["kThreadKernels"])
                streams = {}
                for kernel in kernels:
                    streams.setdefault(kernel.stream, set()).add(kernel.tid)
                self.assertEqual(len(streams), E["kThreads"])
                self.assertNotIn(0, streams)
                for tids in streams.values():
                    self.assertEqual(len(tids), 1)
                syncs = [c for c in log.calls() if c.name == "cudaStreamSynchronize_ptsz"]
                self.assertEqual(len(syncs), E["kThreads"] * E["kThreadSyncs"])

    def test_a_captured_graph_replays_all_of_its_nodes(self):
        for name in flavours("graph"):
            with self.subTest(name):
                log = self.run_puppet(self.puppet(name))
                launches = {c.correlation for c in log.calls("cudaGraphLaunch")}
                self.assertEqual(len(launches), E["kGraphLaunches"])
                nodes = [o for o in log.ops() if o.graph and o.kind != "marker"]
                self.assertEqual(len(nodes), E["kGraphLaunches"] * E["kGraphNodes"])
                self.assertEqual({o.correlation for o in nodes}, launches)
                kernels = log.ops("kernel")
                self.assertEqual(len(kernels), E["kGraphLaunches"] * E["kGraphKernels"])

    def test_two_runtimes_share_one_driver(self):
        log = self.run_puppet(self.puppet("two_runtimes"))
        self.assertEqual(len(log.ops("kernel")), 3 * E["kPartKernels"])
        self.assertEqual(len({o.context for o in log.ops("kernel")}), 1)

    def test_a_runtime_in_no_global_scope_works(self):
        for major in ("12", "13"):
            with self.subTest(major):
                library = os.path.join(PUPPETS, "libpart%s.so" % major)
                log = self.run_puppet(
                    self.puppet("local_runtime"), library, "part" + major
                )
                self.assertEqual(len(log.ops("kernel")), E["kPartKernels"])

    def test_the_log_of_a_killed_trainer_is_complete(self):
        """SIGKILL during a wait of half an hour: every call before it is there, and
        the call that never returned is the last one."""
        environment = self.environment("kernel_us.optimizer=1.8e9")
        trainer = subprocess.Popen([self.puppet("trainer_host13")], env=environment)
        path = os.path.join(self.folder, "truth.%d" % trainer.pid)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if not os.path.exists(path):
                continue
            log = truth.read(path)
            if len(log.ops("kernel", "optimizer")) == 1 and not log.calls()[-1].end:
                break
        trainer.send_signal(signal.SIGKILL)
        self.assertEqual(trainer.wait(), -signal.SIGKILL)
        log = truth.read(path)
        per_step = E["kForwardKernels"] + E["kBackwardKernels"] + E["kOptimizerKernels"]
        self.assertEqual(len(log.ops("kernel")), per_step)
        unfinished = [c for c in log.calls() if not c.end]
        # The first step allocates a workspace; freeing it waits for the kernel.
        self.assertEqual([c.name for c in unfinished], ["cudaFree"])
        self.assertEqual(unfinished[0].start, max(c.start for c in log.calls()))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""One script of this folder on the simulated device under `lull run`: what lull says
of it, and what really happened."""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"), os.path.join(ROOT, "tests", "sim"),
                os.path.join(ROOT, "tools", "demo_job")]
import checks
import guest
import truth

ON_SIM = os.path.join(HERE, "run_on_sim")
# What is read back is zero: kernels compute nothing, and programs decide on it.
CONFIG = "zero_reads_kib=4"


def python(script, *arguments):
    return [ON_SIM, "python", os.path.join(HERE, script), *arguments]


class Scenario:
    # The budget of 100 % is for exactness: on a busy machine the default would thin stacks.
    def __init__(self, host, name, command, config="", budget="100"):
        self.name = name
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            log = os.path.join(folder, "truth")
            self.done = guest.execute(
                [guest.LULL, "run", "--quiet", "--overhead-budget", budget, "--name", name, "--",
                 *command],
                {**host.environment, "LULL_SIM_LOG": log,
                 "LULL_SIM_CONFIG": f"{CONFIG};{config}"}, timeout=900)
            self.truth = truth.load(log)
        self.syncs, self.allocs = (self.ask(verb) for verb in ("syncs", "allocs"))

    def ask(self, verb, *options):
        return checks.query(guest.LULL, verb, self.name, *options)

    def sync_rows(self, file, line):
        """{api: row} of what synchronised at a line; `file` is the end of its path."""
        return {row["api"]: row for row in self.syncs["sync_points"]
                if row["site"]["line"] == line and row["site"]["file"].endswith(file)}

    def sites(self):
        """{(file name, line)} of everything that synchronised."""
        return {(os.path.basename(row["site"]["file"]), row["site"]["line"])
                for row in self.syncs["sync_points"]}

    def copies(self, direction, pageable=None):
        """The program's calls of cudaMemcpyAsync in a direction ("DtoH"), in order."""
        wanted = {op.correlation for op in self.truth.ops("copy") if op.copy == direction
                  and (pageable is None or op.pageable == pageable)}
        return [call for call in self.truth.calls("cudaMemcpyAsync")
                if call.correlation in wanted]

    def syncs_after(self, direction, pageable=None):
        """The synchronisations that follow such copies on their threads, in order."""
        copies = {call.correlation for call in self.copies(direction, pageable)}
        found, last = [], {}
        for call in self.truth.calls():
            if call.name == "cudaMemcpyAsync":
                last[call.tid] = call.correlation
            elif call.name == "cudaStreamSynchronize":
                if last.pop(call.tid, None) in copies:
                    found.append(call)
        return found


def line_of(path, text, occurrence=0):
    """The number of the line of `path` that contains `text`."""
    with open(path) as source:
        lines = [number for number, line in enumerate(source, 1) if text in line]
    return lines[occurrence]


def site(script, name):
    return line_of(os.path.join(HERE, script), f"# SITE: {name}")


def milliseconds(calls):
    return sum(call.duration for call in calls) / 1e6

#!/usr/bin/env python3
"""`lull import`: made-up traces of which everything is known, damaged ones, and those of
real GPUs in $LULL_TRACES or ../shared/traces beside the project where they are."""

import csv
import glob
import gzip
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import guest
import trace_oracle

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = os.environ.get("LULL_TRACES") or os.path.join(os.path.dirname(ROOT), "shared",
                                                       "traces")
PID, TID, BACKWARD = 4000, 4000, 4001


def x(category, name, start, end, tid=TID, pid=PID, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start,
            "dur": end - start, "args": arguments}


def call(name, start, end, correlation=0, tid=TID):
    return x("cuda_runtime", name, start, end, tid, correlation=correlation)


def kernel(name, start, end, correlation, device=0, stream=7):
    return x("kernel", name, start, end, stream, device, device=device, stream=stream,
             correlation=correlation, grid=[8, 1, 1], block=[128, 1, 1])


def frame(place, start, end, tid=TID):
    return x("python_function", place, start, end, tid)


def trace(events, **fields):
    return {"schemaVersion": 1, "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_751_410_836_000_000_000,
            "deviceProperties": [{"id": 0, "name": "Some GPU", "numSms": 8}],
            "traceEvents": events, **fields}


# 100 us busy, 900 idle in load(), 100 us busy, 500 idle in a sync, 100 us busy.
STORY = [
    frame("train.py(1): <module>", 0, 2000),
    frame("train.py(10): step", 5, 1990),
    frame("train.py(20): load", 30, 995),
    frame("<built-in function zoom at 0x7f01>", 40, 990),
    call("cudaLaunchKernel", 10, 20, 1),
    kernel("first", 20, 120, 1),
    call("cudaLaunchKernel", 1010, 1020, 2),
    kernel("second", 1020, 1120, 2),
    frame("train.py(30): log", 1040, 1600),
    call("cudaStreamSynchronize", 1050, 1125),
    call("cudaLaunchKernel", 1610, 1620, 3),
    kernel("third", 1620, 1720, 3),
]


def nsys_export(path):
    """Two processes with a GPU each, which use the same correlation ids."""
    if os.path.exists(path):
        os.remove(path)
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT,
              globalTid INT, correlationId INT, nameId INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT,
              streamId INT, correlationId INT, globalPid INT, demangledName INT, gridX INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT,
              streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT,
              srcKind INT, dstKind INT);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, globalTid INT,
              text TEXT, textId INT);
            INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'),
              (2, 'cudaMemcpyAsync_ptsz_v7000'), (3, 'gemm<int>'), (4, 'forward'),
              (5, 'cudaDeviceSynchronize_v3020');""")
        for number, pid in enumerate((111, 112)):
            process = pid << 24
            thread = process | pid
            wait = 100_000 * (number + 1)
            database.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)",
                [(0, 5_000, 0, thread, 1, 1), (5_000, 6_000, 67, thread, 1, 1),
                 (wait, wait + 5_000, 0, thread, 2, 1),
                 (wait + 6_000, wait + 30_000, 0, thread, 3, 2)])
            database.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 7, ?, ?, 3, 8)",
                [(5_000, 50_000, number, 1, process),
                 (wait + 5_000, wait + 15_000, number, 2, process)])
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, 7, 3, ?, 16, 2, 2, 0)",
                (wait + 20_000, wait + 29_000, number, process))
            database.execute("INSERT INTO NVTX_EVENTS VALUES (0, 90000, 59, ?, NULL, 4)",
                             (thread,))
    database.close()
    return path


class Import(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.folder = tempfile.TemporaryDirectory(prefix="lull-t-")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()
        cls.folder.cleanup()

    def lull(self, *arguments, status=0):
        done = guest.execute([guest.LULL, *arguments], self.host.environment)
        self.assertEqual(done.status, status, (arguments, done.stdout, done.stderr))
        return done

    def write(self, name, content):
        path = os.path.join(self.folder.name, name)
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        if name.endswith(".gz"):
            content = gzip.compress(content)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def job_of(self, *paths):
        done = self.lull("import", "--quiet", *paths)
        self.assertRegex(done.stdout, r"\A[0-9a-f]{32}\n\Z")
        self.assertEqual(done.stderr, "")
        return done.stdout.strip()

    def ask(self, verb, job, *arguments):
        return json.loads(self.lull(verb, job, "--json", "--top", "0", *arguments).stdout)

    def check_against_the_oracle(self, path):
        events = trace_oracle.load(path)
        answer = self.ask("gaps", self.job_of(path))
        expected = trace_oracle.busy_and_idle_ns(events)
        for row in answer["devices"]:
            busy, idle = expected.pop(row["device"])
            self.assertAlmostEqual(row["busy_ms"] * 1e6, busy, delta=busy * 1e-4 + 1)
            self.assertAlmostEqual(row["idle_ms"] * 1e6, idle, delta=idle * 1e-4 + 1)
        self.assertEqual(expected, {})
        causes = sum(row["total_ms"] for row in answer["causes"])
        self.assertAlmostEqual(causes, answer["gpu"]["idle_ms"], delta=1e-3)
        self.assertEqual(answer["gpu"]["late_operations"], 0)
        self.assertEqual(answer["losses"]["events_lost"], 0)
        found = answer["job"]["imported"]["found"]
        self.assertEqual(found.get("GPU records without a launch", 0),
                         trace_oracle.without_launch(events))
        return answer


class MadeUp(Import):
    def test_tells_the_story(self):
        path = self.write("story.json", trace(STORY))
        answer = self.check_against_the_oracle(path)
        self.assertAlmostEqual(answer["gpu"]["busy_ms"], 0.3)
        self.assertAlmostEqual(answer["gpu"]["idle_ms"], 1.4)
        causes = {row["cause"]: row["total_ms"] for row in answer["causes"]}
        # The sync blocked for 75 us, which is what it owes of what follows it.
        self.assertAlmostEqual(causes["sync"], 0.08, delta=1e-6)
        first = answer["gaps"][0]
        self.assertEqual(first["cause"], "host_code")
        doing = first["doing"][0]
        self.assertEqual((doing["file"], doing["line"], doing["function"]),
                         ("train.py", 20, "load"))
        self.assertTrue(doing["line_is_function_start"])
        # The host is late from 120 to 1010, in load() until 995, and once more from 1200,
        # where the sync's part ends, to 1610.
        self.assertAlmostEqual(doing["share_percent"], 100 * 875 / (890 + 410), delta=1e-6)
        self.assertEqual(doing["low_percent"], doing["high_percent"])
        self.assertEqual(doing["callee"]["function"], "zoom")
        self.assertAlmostEqual(answer["gpu"]["explained_percent"], 100, delta=0.01)

    def test_a_long_launch_before_an_idle_gpu_is_the_calls_own_time(self):
        path = self.write("lazy.json", trace([
            frame("train.py(1): <module>", 0, 9000),
            call("cudaLaunchKernel", 10, 20, 1), kernel("first", 20, 120, 1),
            call("cudaLaunchKernel", 200, 5200, 2), kernel("second", 5210, 5310, 2),
            # The queue is full, and the GPU busy: nobody's waste.
            call("cudaLaunchKernel", 5220, 8000, 3), kernel("third", 5310, 8010, 3)]))
        answer = self.check_against_the_oracle(path)
        causes = {row["cause"]: row["total_ms"] for row in answer["causes"]}
        self.assertAlmostEqual(causes["launch_call"], 5.0, delta=1e-6)
        self.assertAlmostEqual(causes["launch_latency"], 0.010, delta=1e-6)
        self.assertEqual(answer["gaps"][0]["culprit"]["function"], "<module>")
        self.assertEqual(answer["gaps"][0]["api"], "cudaLaunchKernel")

    def test_a_trace_without_a_date_has_none(self):
        path = self.write("dateless.json", {"traceEvents": STORY})
        job = self.ask("gaps", self.job_of(path))["job"]
        self.assertIsNone(job["started_at"])
        self.assertNotIn("1970", self.lull("jobs").stdout)
        self.assertNotIn("never ran", self.lull("report", job["id"]).stdout)

    def test_same_files_are_the_same_job(self):
        a = self.write("same.json", trace(STORY))
        b = self.write("same.json.gz", trace(STORY))
        first = self.job_of(a)
        events = self.ask("gaps", first)["job"]["events"]
        self.assertEqual(self.job_of(a), first)
        self.assertEqual(self.ask("gaps", first)["job"]["events"], events)
        self.assertNotEqual(self.job_of(b), first)  # other bytes

    def spools(self):
        places = (os.path.join(self.host.environment["XDG_DATA_HOME"], "lull"),
                  self.host.environment["LULL_RUNTIME_DIR"])
        return [os.path.join(place, folder, job) for place in places
                for folder in ("spool", "spool-remote")
                if os.path.isdir(os.path.join(place, folder))
                for job in os.listdir(os.path.join(place, folder))]

    def test_nothing_is_left_of_files_that_the_collector_has(self):
        # Long enough for the answer to come while they are read, and not.
        for name, count in (("long.json.gz", 150_000), ("short.json", 10)):
            path = self.write(name, trace([kernel("k", 10 * i, 10 * i + 5, 0)
                                           for i in range(count)]))
            job = self.job_of(path)
            done = self.lull("import", "--name", "other", path)
            self.assertEqual(done.stdout.strip(), job)
            self.assertIn(f"imported before, as job {job}", done.stderr)
            self.assertEqual(self.spools(), [])
            self.assertEqual(self.ask("kernels", job)["total_calls"], count)

    def test_nothing_is_left_where_no_collector_answers(self):
        whole = self.write("whole.json", trace(STORY + [kernel("unseen", 1, 2, 0)]))
        damaged = self.write("damaged.json", b'{"traceEvents": [')
        for path in (whole, damaged):
            done = self.lull("import", "--collector", "unix:/tmp/no-such-lulld", path, status=1)
            self.assertEqual(done.stdout, "")
            self.assertIn("/tmp/no-such-lulld", done.stderr)
            self.assertEqual(self.spools(), [])

    def test_who_waits_for_a_silent_collector_holds_up_nobody(self):
        path = self.write("wanted.json", trace(STORY + [kernel("late", 1, 2, 0)]))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            waiting = subprocess.Popen(
                [guest.LULL, "import", "--collector",
                 f"127.0.0.1:{silent.getsockname()[1]}", path],
                env=self.host.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            connection, _ = silent.accept()  # it is at its question now
            with connection:
                try:
                    self.job_of(path)
                    self.assertIsNone(waiting.poll())
                finally:
                    waiting.send_signal(signal.SIGINT)
                    waiting.communicate()
        self.assertEqual(self.spools(), [])

    def test_imports_of_the_same_files_at_once_make_one_job(self):
        files = [self.write(f"at-once/rank{rank}.json",
                            trace([kernel("k", 10 * i, 10 * i + 5, 0) for i in range(20_000)],
                                  distributedInfo={"rank": rank, "world_size": 2}))
                 for rank in range(2)]
        started = [subprocess.Popen([guest.LULL, "import", "--quiet", *order],
                                    env=self.host.environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
                   for order in (files, files[::-1], files)]
        for process in started:
            _, err = process.communicate(timeout=60)
            if process.returncode != 0:
                self.assertRegex(err, "another lull import|is running")
        job = self.job_of(*files)
        for rank in ("0", "1"):
            answer = self.ask("kernels", job, "--rank", rank)
            self.assertEqual(answer["total_calls"], 20_000)
        self.assertEqual(self.spools(), [])

    def test_ranks_of_a_folder_are_processes_of_one_job(self):
        for rank in range(3):
            self.write(f"ranks/worker.{rank}.pt.trace.json.gz",
                       trace(STORY, distributedInfo={"rank": rank, "world_size": 3}))
        job = self.job_of(os.path.join(self.folder.name, "ranks"))
        report = self.ask("report", job)
        self.assertEqual(sorted(row["rank"] for row in report["processes"]), [0, 1, 2])
        self.assertAlmostEqual(report["gpu"]["busy_ms"], 0.9)
        self.assertAlmostEqual(self.ask("gaps", job, "--rank", "1")["gpu"]["busy_ms"], 0.3)

    def test_two_windows_of_one_rank_are_refused(self):
        a = self.write("window0.json", trace(STORY, distributedInfo={"rank": 4}))
        b = self.write("window1.json", trace(STORY[:-1], distributedInfo={"rank": 4}))
        done = self.lull("import", a, b, status=1)
        self.assertIn("rank 4", done.stderr)

    def test_names_of_categories_of_2021(self):
        old = {"kernel": "Kernel", "cuda_runtime": "Runtime"}
        events = [dict(e, cat=old.get(e["cat"], e["cat"])) for e in STORY
                  if e["cat"] != "python_function"]
        for event in events:
            event["tid"] = f"stream {event['tid']}" if event["cat"] == "Kernel" else "4000"
        answer = self.check_against_the_oracle(self.write("old.json", events))
        self.assertAlmostEqual(answer["gpu"]["idle_ms"], 1.4)

    def test_rocm(self):
        events = [
            call("hipLaunchKernel", 0, 5, 1), kernel("k", 5, 10, 1, device=2),
            call("hipFree", 12, 112),
            call("hipExtModuleLaunchKernel", 113, 115, 2), kernel("k", 116, 120, 2, device=2),
            call("hipMemcpyWithStream", 130, 150, 3),
            x("gpu_memcpy", "Memcpy DtoH (Device -> Host)", 140, 149, 0, 2, device=2,
              stream=0, correlation=3, bytes=4),
        ]
        path = self.write("rocm.json", trace(events))
        causes = {r["cause"]: r["total_ms"] for r in self.check_against_the_oracle(path)["causes"]}
        self.assertAlmostEqual(causes["allocator"], 0.1)
        syncs = self.ask("syncs", self.job_of(path))["sync_points"]
        self.assertEqual([(s["api"], s["calls"]) for s in syncs], [("hipMemcpyWithStream", 1)])

    def test_copies_that_block_are_syncs(self):
        def copy(name, number, size, returns):
            start = 1000 * number
            return [call("cudaMemcpyAsync", start, start + returns, number),
                    x("gpu_memcpy", f"Memcpy {name}", start + 100, start + 200, 7, 0, device=0,
                      stream=7, correlation=number, bytes=size)]
        events = (copy("DtoH (Device -> Pageable)", 1, 4, 201) +
                  copy("DtoH (Device -> Pinned)", 2, 8, 5) +
                  copy("HtoD (Pageable -> Device)", 3, 65536, 150) +
                  copy("HtoD (Pageable -> Device)", 4, 65537, 150) +
                  copy("HtoD (Pageable -> Device)", 5, 1 << 20, 5) +
                  copy("DtoD (Device -> Device)", 6, 1 << 20, 5))
        syncs = self.ask("syncs", self.job_of(self.write("copies.json", trace(events))))
        self.assertEqual(sum(row["calls"] for row in syncs["sync_points"]), 2)
        self.assertEqual(sum(row["bytes"] for row in syncs["sync_points"]), 4 + 65537)

    def test_a_full_queue_is_needed_and_no_waste(self):
        events = [call("cudaLaunchKernel", 0, 10, 1), kernel("long", 10, 5000, 1),
                  call("cudaLaunchKernel", 20, 4990, 2), kernel("next", 5000, 6000, 2)]
        path = self.write("full.json", trace(events))
        self.assertEqual(self.check_against_the_oracle(path)["gpu"]["idle_ms"], 0)
        self.assertEqual(self.ask("syncs", self.job_of(path))["sync_points"], [])

    def test_records_without_a_launch_are_unknown(self):
        events = [kernel("before", 0, 10, 0), kernel("lost", 110, 120, 77),
                  call("cudaLaunchKernel", 125, 130, 5), kernel("known", 131, 140, 5)]
        answer = self.check_against_the_oracle(self.write("lost.json", trace(events)))
        self.assertAlmostEqual(answer["gpu"]["unknown_ms"], 0.1)

    def test_a_graph_is_one_call_with_many_kernels(self):
        events = [call("cudaGraphLaunch", 0, 10, 1)]
        events += [kernel(f"node{i}", 20 + 10 * i, 29 + 10 * i, 1) for i in range(50)]
        path = self.write("graph.json", trace(events))
        self.assertEqual(self.check_against_the_oracle(path)["gpu"]["unknown_ms"], 0)
        self.assertEqual(self.ask("kernels", self.job_of(path))["total_calls"], 50)

    def test_steps_and_data(self):
        events = []
        for step in range(3):
            t = 10_000 * step
            events += [x("user_annotation", f"ProfilerStep#{step + 7}", t, t + 9_000),
                       x("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter"
                         ".__next__", t + 100, t + 5_100),
                       call("cudaLaunchKernel", t + 5_200, t + 5_210, step + 1),
                       kernel("train", t + 5_210, t + 8_000, step + 1)]
        path = self.write("steps.json", trace(events))
        answer = self.check_against_the_oracle(path)
        causes = {r["cause"]: r["total_ms"] for r in answer["causes"]}
        self.assertAlmostEqual(causes["data"], 10)
        steps = self.ask("steps", self.job_of(path))
        self.assertEqual([row["number"] for row in steps["steps"]], [7, 8, 9])
        self.assertEqual([row["duration_ms"] for row in steps["steps"]], [10, 10, 9])

    def test_long_traces_are_judged_as_they_go(self):
        events = []
        for i in range(3000):  # 30 s
            t = 10_000 * i
            events += [frame("train.py(5): prepare", t + 100, t + 9_000),
                       call("cudaLaunchKernel", t + 9_000, t + 9_010, i + 1),
                       kernel("k", t + 9_010, t + 9_910, i + 1)]
        events.sort(key=lambda event: event["name"])
        answer = self.check_against_the_oracle(self.write("long.json.gz", trace(events)))
        self.assertEqual(answer["gaps"][0]["doing"][0]["function"], "prepare")


    def test_nsys(self):
        path = nsys_export(os.path.join(self.folder.name, "made.sqlite"))
        answer = self.check_against_the_oracle(path)
        self.assertEqual(answer["gpu"]["devices"], 2)
        self.assertEqual(answer["gpu"]["unknown_ms"], 0)
        self.assertEqual(answer["job"]["imported"]["ignored"],
                         {"calls of neither runtime nor driver": 2})
        job = self.job_of(path)
        syncs = self.ask("syncs", job)["sync_points"]
        self.assertEqual([(s["api"], s["calls"], s["bytes"]) for s in syncs],
                         [("cudaMemcpyAsync", 2, 32)])
        self.assertEqual([row["name"] for row in self.ask("kernels", job)["kernels"]],
                         ["gemm<int>"])
        regions = self.ask("regions", job)["regions"]
        self.assertEqual([(r["name"], r["count"]) for r in regions], [("forward", 2)])

    def test_backward_work_is_told_with_its_lines(self):
        events = [
            frame("train.py(10): step", 0, 1000),
            frame("model.py(3): forward", 10, 100),
            x("cpu_op", "aten::mm", 20, 60, **{"Sequence number": 5, "Fwd thread id": 0}),
            call("cudaLaunchKernel", 30, 40, 1), kernel("mm", 40, 50, 1),
            frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f>", 120, 900),
            x("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 200, 700, BACKWARD,
              **{"Sequence number": 5, "Fwd thread id": 1}),
            call("cudaLaunchKernel", 600, 610, 2, BACKWARD), kernel("mm2", 610, 620, 2),
        ]
        answer = self.check_against_the_oracle(self.write("backward.json", trace(events)))
        after = answer["gaps"][0]["after"]
        self.assertEqual((after["file"], after["line"], after["function"]),
                         ("train.py", 10, "MmBackward0"))
        self.assertEqual(after["forward_site"]["function"], "forward")
        self.assertEqual(after["backward_of"]["function"], "step")
        self.assertAlmostEqual(answer["gpu"]["explained_percent"], 100, delta=0.01)


    def test_operators_are_those_around_the_launch(self):
        events = [
            x("cpu_op", "aten::linear", 0, 40),
            x("cpu_op", "aten::addmm", 5, 35),
            call("cudaLaunchKernel", 10, 20, 1), kernel("gemm", 20, 120, 1),
            call("cudaLaunchKernel", 50, 55, 2), kernel("alone", 200, 230, 2),
            x("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 60, 99,
              BACKWARD),
            x("cpu_op", "AddmmBackward0", 61, 98, BACKWARD),
            x("cpu_op", "aten::mm", 62, 97, BACKWARD),
            call("cudaLaunchKernel", 70, 75, 3, BACKWARD), kernel("grad", 300, 350, 3),
        ]
        answer = self.ask("ops", self.job_of(self.write("ops.json", trace(events))))
        self.assertEqual(
            {row["name"]: (row["pass"], row["own_launches"], row["launches"])
             for row in answer["ops"]},
            {"aten::addmm": ("unknown", 1, 1), "aten::linear": ("unknown", 0, 1),
             "aten::mm": ("backward", 1, 1), "AddmmBackward0": ("backward", 0, 1)})
        self.assertAlmostEqual(answer["unknown_gpu_ms"], 0.03)


class Damaged(Import):
    def refused(self, name, content, words):
        def jobs():
            return len(json.loads(self.lull("jobs", "--json", "--top", "0").stdout)["jobs"])
        before = jobs()
        done = self.lull("import", self.write(name, content), status=1)
        self.assertIn(words, done.stderr)
        self.assertNotIn("\n", done.stderr.strip())
        self.assertEqual(jobs(), before)

    def test_makes_no_job(self):
        text = json.dumps(trace(STORY)).encode()
        self.refused("none.json", b"", "no trace")
        self.refused("text.json", b"hello", "no trace")
        self.refused("other.json", b'{"a": 1}', "traceEvents")
        self.refused("empty.json", trace([]), "none of its events")
        self.refused("cut.json", text[:-1000], "cut short")
        self.refused("cut.json.gz", text[:-1000], "cut short")
        self.refused("more.json", text + b"{}", "follows the end")
        self.refused("broken.json", text.replace(b'"dur"', b'"dur', 1), "damaged at byte")
        self.refused("deep.json", b'{"traceEvents": [' + b'{"args":' * 100_000, "damaged")
        self.refused("nested.json", b'{"deviceProperties": ' + b"[" * 3_000_000, "damaged")
        packed = gzip.compress(text)
        self.refused("cut2.json", packed[:-30], "cut short")
        wrong = bytearray(packed)
        wrong[len(wrong) // 2] ^= 0x40
        self.refused("wrong.json", bytes(wrong), "damaged")
        self.lull("import", os.path.join(self.folder.name, "absent.json"), status=1)
        self.lull("import", status=2)

    def test_damaged_exports_of_nsys_do_no_harm(self):
        path = nsys_export(os.path.join(self.folder.name, "whole.sqlite"))
        with open(path, "rb") as file:
            whole = file.read()
        self.refused("cut.sqlite", whole[:len(whole) // 2], "")
        self.refused("none.sqlite", b"SQLite format 3\0" + b"\0" * 5000, "")
        for at in range(20, len(whole), len(whole) // 60):
            wrong = bytearray(whole)
            wrong[at:at + 8] = bytes(value ^ 0x95 for value in wrong[at:at + 8])
            path = self.write("mutated.sqlite", bytes(wrong))
            done = guest.execute([guest.LULL, "import", "--quiet", path], self.host.environment)
            self.assertIn(done.status, (0, 1), (at, done.stderr))

    def test_control_bytes_in_names_are_spaces(self):
        text = json.dumps(trace(STORY)).encode().replace(b"first", b"fi\x01\nst")
        path = self.write("control.json", text)
        kernels = self.ask("kernels", self.job_of(path))["kernels"]
        self.assertIn("fi  st", [row["name"] for row in kernels])
        self.lull("gaps", "--json")

    def test_no_byte_that_is_changed_does_any_harm(self):
        text = json.dumps(trace(STORY)).encode()
        for at in range(0, len(text), 97):
            wrong = bytearray(text)
            wrong[at] ^= 0x15
            path = self.write("mutated.json", bytes(wrong))
            done = guest.execute([guest.LULL, "import", "--quiet", path], self.host.environment)
            self.assertIn(done.status, (0, 1), (at, done.stderr))

    def test_an_import_that_is_killed_is_repeated(self):
        events = [kernel("k", 10 * i, 10 * i + 5, 0) for i in range(200_000)]
        path = self.write("killed.json", trace(events))
        for delay in (0.02, 0.1, 0.3):
            process = subprocess.Popen([guest.LULL, "import", "--quiet", path],
                                       env=self.host.environment, stdout=subprocess.DEVNULL)
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
        answer = self.ask("kernels", self.job_of(path))
        self.assertEqual(answer["total_calls"], 200_000)


def real(*names):
    """Skips where the traces are not there."""
    missing = [n for n in names if not os.path.exists(os.path.join(TRACES, n))]
    return unittest.skipIf(missing, f"skipped: {', '.join(missing)} not in {TRACES}")


def every_trace():
    for folder, _, names in sorted(os.walk(TRACES)):
        for name in sorted(names):
            if name.endswith((".json.gz", ".sqlite")):
                yield os.path.join(folder, name)


class Real(Import):
    @unittest.skipUnless(os.path.isdir(TRACES), f"skipped: there is no {TRACES}")
    def test_busy_and_idle_are_those_of_the_records(self):
        for path in every_trace():
            with self.subTest(os.path.relpath(path, TRACES)):
                self.check_against_the_oracle(path)

    @real("tracelens/h100_nsfw.json.gz", "tracelens/b200_eager.json.gz",
          "kineto/v100_resnet50_workers_0.json.gz", "tracelens/mi300_ddp_resnet18.json.gz")
    def test_gpu_time_of_operators_is_that_of_the_trace(self):
        for name in ("tracelens/h100_nsfw", "tracelens/b200_eager",
                     "kineto/v100_resnet50_workers_0", "tracelens/mi300_ddp_resnet18"):
            path = os.path.join(TRACES, name + ".json.gz")
            expected = trace_oracle.own_gpu_us(trace_oracle.load(path))
            answer, told = self.ask("ops", self.job_of(path)), {}
            for row in answer["ops"]:
                told[row["name"]] = told.get(row["name"], 0) + row["own_gpu_ms"] * 1e3
            with self.subTest(name):
                self.assertAlmostEqual(answer["unknown_gpu_ms"] * 1e3,
                                       float(expected.pop(None, 0)), delta=1e-2)
                for operator, total in expected.items():
                    self.assertAlmostEqual(told.pop(operator), float(total), delta=1e-2)
                self.assertEqual({n: t for n, t in told.items() if t}, {})

    @unittest.skipUnless(glob.glob(os.path.join(TRACES, "tracelens", "*.gpu_timeline.csv")),
                         f"skipped: there is no table of TraceLens in {TRACES}")
    def test_busy_and_idle_are_those_of_tracelens(self):
        """Where all records have a launch: it leaves out those that have none."""
        compared = 0
        for table in sorted(glob.glob(os.path.join(TRACES, "tracelens", "*.csv"))):
            if not table.endswith(".gpu_timeline.csv"):
                continue
            path = table.replace(".gpu_timeline.csv", ".json.gz")
            with self.subTest(os.path.basename(path)), open(table, encoding="utf-8") as file:
                theirs = {row["type"]: float(row["time ms"]) for row in csv.DictReader(file)}
                ours = self.ask("gaps", self.job_of(path))
                self.assertEqual(trace_oracle.without_launch(trace_oracle.load(path)), 0)
                # It adds up doubles: 4 ns in half a second were seen.
                for name, of_tracelens in (("busy", "busy_time"), ("idle", "idle_time")):
                    self.assertAlmostEqual(ours["gpu"][name + "_ms"], theirs[of_tracelens],
                                           delta=1e-3)
                compared += 1
        self.assertGreater(compared, 0)

    @real("tracelens/h100_owlv2.json.gz")
    def test_h100_owlv2(self):
        job = self.job_of(os.path.join(TRACES, "tracelens/h100_owlv2.json.gz"))
        gaps = self.ask("gaps", job)
        syncs = self.ask("syncs", job)["sync_points"]
        box = [s for s in syncs if s["site"]["function"] == "box_predictor"]
        self.assertAlmostEqual(sum(s["blocked_ms"] for s in box), 358.5, delta=1)
        self.assertLess(sum(s["wasted_ms"] for s in box), 2)
        zoom = sum(row["total_ms"] * d["share_percent"] / 100 for row in gaps["gaps"]
                   for d in row["doing"] if d["function"] == "zoom")
        self.assertGreater(zoom / gaps["gpu"]["idle_ms"], 0.8)

    def first_cause(self, name):
        gaps = self.ask("gaps", self.job_of(os.path.join(TRACES, name)))
        return gaps, gaps["causes"][0]["cause"], gaps["causes"][0]["share_percent"]

    @real("tracelens/mi300_ddp_resnet18.json.gz")
    def test_mi300_ddp_resnet18(self):
        gaps, cause, share = self.first_cause("tracelens/mi300_ddp_resnet18.json.gz")
        self.assertEqual(cause, "allocator")
        self.assertGreater(share, 94)
        free = sum(row["total_ms"] for row in gaps["gaps"] if row["api"] == "hipFree")
        self.assertGreater(free / gaps["gpu"]["idle_ms"], 0.9)
        # Half of it is backward work: told with the line that called backward().
        self.assertGreater(gaps["gpu"]["explained_percent"], 90)

    @real("kineto/v100_resnet50_workers_0.json.gz")
    def test_v100_resnet50_workers_0(self):
        gaps, cause, _ = self.first_cause("kineto/v100_resnet50_workers_0.json.gz")
        self.assertEqual((cause, gaps["gpu"]["verdict"]), ("data", "data"))
        self.assertAlmostEqual(gaps["causes"][0]["total_ms"], 283, delta=3)
        self.assertFalse(gaps["job"]["imported"]["line_is_function_start"])

    @real("kineto/v100_resnet50_workers_0.json.gz")
    def test_steps_are_those_of_the_plugin_for_tensorboard(self):
        """Its figures were verified by its owners. It lets a step last until what it
        launched is done, lull until the next one begins; so a kernel may belong to another
        step, and all of them together take as long."""
        answer = self.ask("steps", self.job_of(
            os.path.join(TRACES, "kineto/v100_resnet50_workers_0.json.gz")))
        steps = answer["steps"]
        self.assertEqual([step["number"] for step in steps], [5, 6, 7, 8, 9, 10])
        self.assertTrue(all(step["traced"] for step in steps))
        theirs = {"duration": 177592, "kernel": 98589, "memcpy": 1915, "memset": 89,
                  "runtime": 2908, "data": 59262, "communication": 0,
                  "other": 13674 + 1156}  # what runs on the CPU, and the rest
        for part, mean_us in theirs.items():
            ours = sum(step[part + "_ms"] for step in steps) / len(steps) * 1e3
            self.assertAlmostEqual(ours, mean_us, delta=mean_us * 0.01, msg=part)
        for what, percent in (("gpu_utilization", 55.51), ("sm_efficiency", 54.68),
                              ("occupancy", 49.13)):
            self.assertAlmostEqual(answer[what + "_percent"], percent,
                                   delta=percent * 0.01, msg=what)

    @real("tracelens/h100_nsfw.json.gz", "tracelens/b200_eager.json.gz",
          *(f"particle_transformer/a100_batch_{n}.json.gz" for n in (2, 32)))
    def test_launch_bound_and_host_bound(self):
        self.assertEqual(self.first_cause("tracelens/h100_nsfw.json.gz")[1], "launch_bound")
        for size in (2, 32):
            gaps, cause, _ = self.first_cause(f"particle_transformer/a100_batch_{size}.json.gz")
            self.assertEqual((cause, gaps["gpu"]["verdict"]), ("launch_bound", "launch"))
        gaps, cause, _ = self.first_cause("tracelens/b200_eager.json.gz")
        self.assertEqual((cause, gaps["gpu"]["verdict"]), ("host_code", "host"))
        self.assertGreater(gaps["gpu"]["explained_percent"], 95)

    @real("particle_transformer/a100_batch_512.json.gz")
    def test_a_module_that_a_launch_loads_is_the_calls_own_time(self):
        gaps, cause, _ = self.first_cause("particle_transformer/a100_batch_512.json.gz")
        self.assertEqual((cause, gaps["gpu"]["verdict"]), ("launch_call", "host"))
        self.assertAlmostEqual(gaps["causes"][0]["total_ms"], 626, delta=2)
        latency = sum(row["total_ms"] for row in gaps["causes"]
                      if row["cause"] == "launch_latency")
        self.assertLess(latency, 10)
        self.assertEqual(gaps["gaps"][0]["api"], "cudaLaunchKernel")

    @real("nsys/h100_2gpu_1s.sqlite")
    def test_nsys_back_pressure_is_no_waste(self):
        job = self.job_of(os.path.join(TRACES, "nsys/h100_2gpu_1s.sqlite"))
        gaps = self.ask("gaps", job)
        self.assertEqual(gaps["gpu"]["devices"], 2)
        self.assertLess(gaps["gpu"]["idle_ms"], 14)
        self.assertNotIn("cudaLaunchKernel",
                         [row["api"] for row in self.ask("syncs", job)["sync_points"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))

#!/usr/bin/env python3
"""`lull import` of memory snapshots of PyTorch: pickles that Python writes, of a random
history, against sums that are formed here; and pickles that want to run something."""

import gzip
import io
import json
import os
import pickle
import random
import sys
import unittest

import guest
import import_test

START_US = 1_790_000_000_000_000
MIB = 1 << 20


def frames(function, line):
    return [{"name": "empty", "filename": "/opt/site-packages/torch/nn/x.py", "line": 3},
            {"name": function, "filename": "/home/me/train.py", "line": line}]


class History:
    """A program that allocates and frees, and what its allocator held: first half of it
    was not recorded."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sites = [frames(f"layer{i}", 10 + i) for i in range(7)]
        self.live = {}  # address -> (bytes, site)
        self.events, self.peak, self.peak_by_line = [], 0, {}
        self.allocated = self.frees = self.unknown = 0
        self.time_us, self.next, self.segments = START_US, 1 << 40, []

    def run(self, steps, record):
        before = set() if record else None
        if record:
            before = set(self.live)
            self.note()
        for _ in range(steps):
            self.time_us += self.random.randrange(3)
            if self.live and self.random.random() < 0.48:
                address = self.random.choice(sorted(self.live))
                size, _ = self.live.pop(address)
                if record:
                    self.unknown += address in before
                    before.discard(address)
                    self.frees += 1
                    self.add("free_requested", address, size, [])
                    self.add("free_completed", address, size, [])
                continue
            size, site = self.random.randrange(1, 8 * MIB), self.random.randrange(7)
            if not self.segments or self.random.random() < 0.2:
                self.segments.append(self.next)
                if record:
                    self.add("segment_alloc", self.next, 32 * MIB, self.sites[site])
                self.next += 1 << 30
            address = self.segments[-1] + self.random.randrange(1 << 20) * 512
            if address in self.live:
                continue
            self.live[address] = (size, site)
            if record:
                before.discard(address)
                self.allocated += 1
                self.add("alloc", address, size, self.sites[site])
                self.note()

    def add(self, action, address, size, stack):
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0,
                            "time_us": self.time_us, "compile_context": None,
                            "frames": stack})

    def note(self):
        total = sum(size for size, _ in self.live.values())
        if total > self.peak:
            self.peak = total
            self.peak_by_line = {}
            for address, (size, site) in self.live.items():
                self.peak_by_line.setdefault(site, []).append((address, size))

    def snapshot(self):
        segments = []
        for start in self.segments:
            blocks, used = [], 0
            for address, (size, site) in sorted(self.live.items()):
                if not start <= address < start + (1 << 30):
                    continue
                rounded = -(-size // 512) * 512
                used += rounded
                blocks.append({"address": address, "size": rounded, "requested_size": size,
                               "state": "active_allocated", "frames": self.sites[site]})
            blocks.append({"address": start + (1 << 29), "size": MIB, "requested_size": 0,
                           "state": "inactive", "frames": []})
            segments.append({"device": 0, "address": start, "total_size": used + MIB,
                             "stream": 0, "segment_type": "large", "is_expandable": False,
                             "segment_pool_id": (0, 0), "frames": [], "blocks": blocks})
        return {"segments": segments, "device_traces": [self.events],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "",
                                       "garbage_collection_threshold": 0.5,
                                       "roundup_power2_divisions": {"64": 0}},
                "external_annotations": []}


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Snapshots(import_test.Import):
    def save(self, name, value, protocol=pickle.DEFAULT_PROTOCOL):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            pickle.dump(value, file, protocol)
        return path

    def refused(self, path, *words):
        done = self.lull("import", path, status=1)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stdout, "")

    def row(self, path):
        answer = self.ask("memory", self.job_of(path))
        (row,) = answer["memory"]
        return row, answer

    def test_peak_by_site_of_random_histories_of_all_protocols(self):
        for seed, protocol in enumerate([2, 3, 4, 5, 4, 5]):
            history = History(seed)
            history.run(60, record=False)
            history.run(3000, record=True)
            path = self.save(f"random{seed}.pickle", history.snapshot(), protocol)
            row, answer = self.row(path)
            imported = answer["job"]["imported"]
            found, (use,) = imported["found"], imported["segments"]
            with self.subTest(seed=seed, protocol=protocol):
                self.assertEqual((found["allocations"], found["frees"]),
                                 (history.allocated, history.frees))
                self.assertEqual((row["allocator"], row["device"]), ("torch_cuda", 0))
                self.assertEqual(row["peak_bytes"], history.peak)
                self.assertEqual(row["live_bytes"],
                                 sum(size for size, _ in history.live.values()))
                self.assertEqual(use["requested"], row["live_bytes"])
                self.assertEqual(row["reserved_bytes"], use["reserved"])
                self.assertEqual(use["reserved"], use["allocated"] + use["free_in_used"] +
                                 use["free_segments"] + use["pending"])
                self.assertEqual(use["largest_free"], MIB)
                self.check_sites(history, row)

    def check_sites(self, history, row):
        # Who allocated what was freed later, and was there before, nobody knows.
        freed = {e["addr"] for e in history.events if e["action"] == "free_requested"}
        made = {e["addr"] for e in history.events if e["action"] == "alloc"}
        expected, unknown = {}, 0
        for site, blocks in history.peak_by_line.items():
            for address, size in blocks:
                if address in freed and address not in made:
                    unknown += size
                else:
                    expected[10 + site] = expected.get(10 + site, 0) + size
        told = {s["site"]["line"]: s["bytes"] for s in row["peak_sites"]}
        self.assertEqual(sum(told.values()), history.peak)
        self.assertEqual({line: size for line, size in told.items() if line}, expected)
        self.assertEqual(told.get(0, 0), unknown)

    def test_it_is_told_in_words(self):
        history = History(40)
        history.run(500, record=True)
        path = self.save("words.pickle", history.snapshot())
        with open(path, "rb") as plain, gzip.open(path + ".gz", "wb") as packed:
            packed.write(plain.read())
        for one in (path, path + ".gz"):
            job = self.job_of(one)
            text = self.lull("memory", job).stdout
            self.assertIn("/home/me/train.py:1", text)
            self.assertIn("Held by PyTorch's allocator", text)
            report = self.lull("report", job).stdout
            self.assertIn("events of PyTorch's memory snapshot", report)
            self.assertIn("a memory snapshot has neither", report)

    def test_a_folder_of_ranks(self):
        folder = os.path.join(self.folder.name, "ranks")
        os.mkdir(folder)
        for rank in range(2):
            history = History(50 + rank)
            history.run(200, record=True)
            with open(os.path.join(folder, f"rank{rank}.pickle"), "wb") as file:
                pickle.dump(history.snapshot(), file)
        answer = self.ask("memory", self.job_of(folder))
        self.assertEqual(sorted(row["rank"] for row in answer["memory"]), [0, 1])
        self.assertEqual([use["rank"] for use in answer["job"]["imported"]["segments"]],
                         [0, 1])

    def test_nothing_of_a_pickle_is_executed(self):
        witness = os.path.join(self.folder.name, "witness")
        for protocol in (2, 3, 4, 5):
            inside = History(60).snapshot()
            inside["segments"] = [Evil(witness)]
            for name, value in (("alone", Evil(witness)), ("inside", inside),
                                ("class", {"segments": [unittest.TestCase]}),
                                ("set", {"segments": {1, 2}}),
                                ("object", {"segments": [], "x": History(1)})):
                path = self.save(f"{name}{protocol}.pickle", value, protocol)
                self.refused(path, "nothing of it was done" if protocol < 4 or
                             name != "set" else "opcode 0x8f")
        self.assertFalse(os.path.exists(witness))
        self.assertEqual(pickle.loads(pickle.dumps(1)), 1)

    def test_what_is_damaged_or_something_else_makes_no_job(self):
        buffer = io.BytesIO()
        history = History(70)
        history.run(300, record=True)
        pickle.dump(history.snapshot(), buffer)
        whole = buffer.getvalue()
        before = len(json.loads(self.lull("jobs", "--json").stdout)["jobs"])
        for name, content, words in (
                ("short", whole[:len(whole) // 2], "cut short"),
                ("nothing", whole[:1], "cut short"),
                ("more", whole + b"N.", "follows"),
                ("list", pickle.dumps([1, 2]), "no memory snapshot"),
                ("weights", pickle.dumps({"weight": [0.5]}), "no memory snapshot"),
                ("length", b"\x80\x04X\xff\xff\xff\xff", "cut short"),
                ("memo", b"\x80\x04Nr\xff\xff\xff\xff.", "out of order")):
            path = os.path.join(self.folder.name, name + ".pickle")
            with open(path, "wb") as file:
                file.write(content)
            self.refused(path, words)
        after = len(json.loads(self.lull("jobs", "--json").stdout)["jobs"])
        self.assertEqual(after, before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))

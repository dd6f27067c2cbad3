"""Why the simulated device was idle, worked out a second time, from the truth.

The collector's engine (daemon/blame/) judges what CUPTI and the hooks told it, as it
streams in. This reads the ground-truth log and the program's own log when all is over,
and follows docs/blame.md in the plainest way: it cuts every gap at every moment at which
anything about a thread changes, and asks for each piece which rule applies.

    cells(oracle, since, until) -> {(cause, culprit line, before line, after line): ns}, …
    done(oracle, since, until) -> {function: ns}, of gaps whose cause is the code itself
"""

import bisect
import collections

LAUNCH_BOUND_NS = 100_000
SLOW_CALL_NS = 100_000
CLOCK_TOLERANCE_NS = 5_000
HOOK_NS = 2_000  # of a call, before and after what the device's log knows of it
# Of a call, a wait or a collection, between the program's own clock and the moment the log
# has: lull's is in between. Where there is more, a hypervisor or an interrupt took the
# thread, which run_delay does not count. (Most are below 3 us, a cold hook takes 10.)
EDGE_NS = 20_000

SYNCS = {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"}
ALLOCATORS = {"cudaMalloc", "cudaFree", "cudaMallocHost", "cudaFreeHost"}
GPU_WORK = ("kernel", "copy", "memset")


def overlap(spans, low, high):
    return any(start < high and end > low for start, end in spans)


class Call(object):
    """A call of the program, with what it submitted."""

    def __init__(self, record, line):
        self.tid, self.start, self.end = record.tid, record.start, record.end
        self.name, self.correlation, self.line = record.name, record.correlation, line
        self.operations = []


class Host(object):
    """The program's own log: lines of calls, and waits."""

    def __init__(self, path):
        self.lines = collections.defaultdict(list)  # tid -> [(line, before, after)]
        # Where lull's clock is between two others: (name of a call, or sort of wait,
        # "begins" or "ends") -> how many, and how many of them are wide though the thread
        # had a processor.
        self.edges, self.unexplained = collections.Counter(), collections.Counter()
        self.wide = collections.defaultdict(list)  # tid -> [(start, end)], edges
        self.late = collections.defaultdict(list)  # tid -> [(start, end)]
        self.delays_ns = 0  # of all threads
        self.waits = collections.defaultdict(list)  # tid -> [(start, end, line, kind)]
        self.collections = collections.defaultdict(list)  # of such, too
        self.ran = collections.defaultdict(list)  # tid -> [(start, end, function)]
        around_waits = []
        with open(path) as file:
            for row in file:
                kind, tid, *rest = row.split()
                if kind == "call":
                    self.lines[int(tid)].append(tuple(map(int, rest)))
                elif kind == "delays":
                    self.delays_ns += int(rest[0])
                elif kind == "late":
                    self.late[int(tid)].append(tuple(map(int, rest)))
                elif kind == "ran":
                    self.ran[int(tid)].append((int(rest[0]), int(rest[1]), rest[2]))
                else:
                    start, end, line, *around = map(int, rest)
                    if kind == "gc":
                        spans, edges = self.collections, zip((start, end), around)
                    else:
                        spans, edges = self.waits, ((around[0], start), (end, around[1]))
                    spans[int(tid)].append((start, end, line, kind))
                    around_waits.append((int(tid), kind, *edges))
        for tid, kind, *edges in around_waits:
            self.add_edges(tid, kind, *edges)

    def add_edges(self, tid, what, *edges):
        for name, (start, end) in zip(("begins", "ends"), edges):
            self.edges[what, name] += 1
            if end - start > EDGE_NS:
                self.wide[tid].append((start, end))
                self.unexplained[what, name] += not overlap(self.late[tid], start, end)


class Operation(object):
    """One operation of a device, of a graph or not."""

    def __init__(self, op):
        self.start, self.end, self.stream = op.start, op.end, op.stream
        self.correlation, self.copies = op.correlation, op.kind != "kernel"


def _operations(truth):
    found = [Operation(op) for op in truth.all_ops if op.kind in GPU_WORK]
    return sorted(found, key=lambda op: (op.start, op.correlation))


def owns_until(sync):
    """Without it the host would be ahead by as long as it blocked, and no more."""
    return sync.end + (sync.end - sync.start)


def _is_of_the_program(name):
    """lull asks the driver about devices and pointers, the programs here never do."""
    return name.startswith("cuda") and name != "cudaPointerGetAttributes"


class Oracle(object):
    def __init__(self, truth, host):
        self.operations = _operations(truth)
        self.calls = {}
        self.of_thread = collections.defaultdict(list)
        position = collections.Counter()
        for record in truth.calls():
            if not _is_of_the_program(record.name):
                continue
            lines = host.lines[record.tid]
            line = 0
            if position[record.tid] < len(lines):
                line, before, after = lines[position[record.tid]]
                host.add_edges(record.tid, record.name, (before, record.start),
                               (record.end, after))
            position[record.tid] += 1
            call = Call(record, line)
            self.calls[record.correlation] = call
            self.of_thread[record.tid].append(call)
        for tid, lines in host.lines.items():
            assert position[tid] == len(lines), (tid, position[tid], len(lines))
        for op in self.operations:
            self.calls[op.correlation].operations.append(op)
        self.submissions = {tid: [call for call in calls if call.operations]
                            for tid, calls in self.of_thread.items()}
        self.pageable = {op.correlation for op in truth.ops("copy") if op.pageable}
        self.host, self.waits, self.late = host, host.waits, host.late
        self.stream_waits = [(op.stream, self.calls[op.correlation])
                             for op in truth.ops("event_wait")
                             if op.correlation in self.calls]
        self.previous_on_stream = {}
        last = {}
        by_submission = sorted(self.operations,
                               key=lambda op: (self.calls[op.correlation].start, op.start))
        for op in by_submission:
            self.previous_on_stream[id(op)] = last.get(op.stream)
            last[op.stream] = op

    def gaps(self):
        """(a, b, operation that ended at a, operation that started at b)"""
        end, ended = None, None
        for op in self.operations:
            if end is not None and op.start > end:
                yield end, op.start, ended, op
            if end is None or op.end > end:
                end, ended = op.end, op

    def is_sync(self, call):
        return call.name in SYNCS or call.correlation in self.pageable

    def state(self, tid, at):
        """(cause, line) of what the thread is in at this moment, or None; and whether it
        waits for another thread there."""
        collection = self._around(self.host.collections[tid], at, lambda w: w[:2])
        if collection is not None:
            return ("gc", collection[2]), False
        call = self._around(self.of_thread[tid], at, lambda c: (c.start, c.end))
        if call is not None and call.name in ALLOCATORS:
            return ("allocator", call.line), False
        wait = self._around(self.waits[tid], at, lambda w: w[:2])
        if wait is not None:
            return ("host_wait", wait[2]), wait[3] == "lock"
        if call is not None and self.is_sync(call):
            return ("sync", call.line), False
        return None, False

    @staticmethod
    def _around(sorted_spans, at, span):
        i = bisect.bisect_right(sorted_spans, at, key=lambda s: span(s)[0]) - 1
        if i >= 0 and span(sorted_spans[i])[0] <= at < span(sorted_spans[i])[1]:
            return sorted_spans[i]
        return None

    def sync_just_before(self, tid, at, tolerance=CLOCK_TOLERANCE_NS):
        """The sync that the thread is in, or has left for less than the tolerance."""
        calls = self.of_thread[tid]
        i = bisect.bisect_right(calls, at, key=lambda c: c.start) - 1
        while i >= 0 and calls[i].end + tolerance > at:
            if self.is_sync(calls[i]):
                return calls[i]
            i -= 1
        return None

    def is_on_the_edge_of_a_sync(self, tid, at):
        """Whether the clocks decide which sync, if any, it had just left."""
        return (self.sync_just_before(tid, at, CLOCK_TOLERANCE_NS - HOOK_NS) is not
                self.sync_just_before(tid, at, CLOCK_TOLERANCE_NS + HOOK_NS))

    def boundaries(self, tid, low, high):
        points = set()
        for spans, span in ((self.of_thread[tid], lambda c: (c.start, c.end)),
                            (self.waits[tid], lambda w: w[:2]),
                            (self.host.collections[tid], lambda w: w[:2])):
            i = max(0, bisect.bisect_left(spans, low, key=lambda s: span(s)[0]) - 1)
            while i < len(spans) and span(spans[i])[0] < high:
                points.update(p for p in span(spans[i]) if low < p < high)
                i += 1
        return points

    def submitted_before(self, tid, at):
        calls = self.submissions[tid]
        i = bisect.bisect_left(calls, at, key=lambda c: c.start) - 1
        while i >= 0 and calls[i].end > at:
            i -= 1
        return calls[i] if i >= 0 else None

    def is_disturbed(self, a, b, ended, op):
        """Not decided by the logs: a thread that is judged by wanted a processor and had
        none, nobody knows at which moments; or the launch was as long after the one before
        it as launch-bound may be, or the gap opened as long after a sync as may be blamed on
        it, or the launch took as much of it as becomes its own, to within what clocks
        agree; or what the thread did was noted late by one of them."""
        launch = self.calls[op.correlation]
        before = self.submitted_before(launch.tid, launch.start)
        pause = launch.start - before.end if before else 0
        if abs(pause - LAUNCH_BOUND_NS) < CLOCK_TOLERANCE_NS:
            return True
        own = min(b, launch.end) - max(a, launch.start)
        if abs(own - SLOW_CALL_NS) < CLOCK_TOLERANCE_NS:
            return True
        threads = {launch.tid, self.calls[ended.correlation].tid}
        return any(self.is_on_the_edge_of_a_sync(tid, a) or
                   overlap(self.late[tid], a, b) or
                   overlap(self.host.wide[tid], self.judged_since(tid, a, launch), b)
                   for tid in threads)

    def judged_since(self, tid, a, launch):
        """The earliest moment of the thread that the gap from `a` on is judged by."""
        before = self.submitted_before(tid, launch.start)
        opened_in = self.sync_just_before(tid, a)
        return min([a] + ([before.end] if before else []) +
                   ([opened_in.start - 1] if opened_in else []))

    def depends(self, op, a):
        previous = self.previous_on_stream[id(op)]
        submission = self.calls[op.correlation].start
        since = self.calls[previous.correlation].start if previous else 0
        if any(stream == op.stream and since < call.start < submission
               for stream, call in self.stream_waits):
            return True
        return (previous is not None and previous.end == a
                and previous.copies != op.copies)

    def judge(self, a, b, ended, op):
        """Pieces (start, end, cause, culprit line, before line, after line) of a gap."""
        launch = self.calls[op.correlation]
        tid, l = launch.tid, launch.start
        before = self.submitted_before(tid, l)
        names = (before.line if before else 0, launch.line)
        device_from = max(a, min(l, b))
        own_until = device_from
        if op is launch.operations[0] and min(b, launch.end) - device_from > SLOW_CALL_NS:
            own_until = min(b, launch.end)
            yield (device_from, own_until, "launch_call", launch.line) + names
        if own_until < b:
            cause = "dependency" if self.depends(op, a) else "launch_latency"
            yield (own_until, b, cause, launch.line) + names
        if device_from == a:
            return
        hop = ended is not None and self.calls[ended.correlation].tid != tid
        suspects = [(tid, before)]
        if hop:
            other = self.calls[ended.correlation].tid
            suspects.append((other, self.submitted_before(other, l)))
        points = {a, device_from}
        for suspect, _ in suspects:
            points |= self.boundaries(suspect, a, device_from)
            opened_in = self.sync_just_before(suspect, a)
            if opened_in is not None and a < owns_until(opened_in) < device_from:
                points.add(owns_until(opened_in))
        points = sorted(points)
        for start, end in zip(points, points[1:]):
            who, its_before = suspects[0]
            state, waits_for_thread = self.state(who, start)
            if waits_for_thread and hop:
                handed, both_wait = self.state(suspects[1][0], start)
                if not both_wait:
                    (who, its_before), state = suspects[1], handed
            opened_in = self.sync_just_before(who, a)
            if state is None and opened_in is not None and start < owns_until(opened_in):
                state = "sync", opened_in.line
            if state is None:
                bound = (who == tid and before is not None
                         and l - before.end <= LAUNCH_BOUND_NS)
                state = ("launch_bound" if bound else "host_code"), launch.line
            yield (start, end) + state + (its_before.line if its_before else 0, launch.line)


def cells(oracle, since, until):
    """Idle time in [since, until) by (cause, culprit line, before line, after line); and
    the gaps, as spans, that are left out because they are disturbed."""
    total, disturbed = collections.Counter(), []
    for a, b, ended, op in oracle.gaps():
        if b <= since or a >= until:
            continue
        if oracle.is_disturbed(a, b, ended, op):
            disturbed.append((max(a, since), min(b, until)))
            continue
        for start, end, cause, culprit, before, after in oracle.judge(a, b, ended, op):
            start, end = max(start, since), min(end, until)
            if start < end:
                total[cause, culprit, before, after] += end - start
    return total, disturbed


def done(oracle, since, until):
    """What the launching thread executed while the device waited for its code: {(before
    line, after line): time by function}, of a program that logs that. "" is what it does
    not log."""
    rows = collections.defaultdict(collections.Counter)
    starts = {tid: [start for start, _, _ in spans] for tid, spans in oracle.host.ran.items()}
    for a, b, ended, op in oracle.gaps():
        if b <= since or a >= until:
            continue
        tid = oracle.calls[op.correlation].tid
        spans = oracle.host.ran.get(tid, ())
        for start, end, cause, _, before, after in oracle.judge(a, b, ended, op):
            start, end = max(start, since), min(end, until)
            if start >= end or cause not in ("host_code", "launch_bound"):
                continue
            total, left = rows[before, after], end - start
            at = max(0, bisect.bisect_right(starts.get(tid, ()), start) - 1)
            for begin, finish, function in spans[at:]:
                if begin >= end:
                    break
                overlap = max(0, min(end, finish) - max(start, begin))
                total[function] += overlap
                left -= overlap
            total[""] += left
    return rows

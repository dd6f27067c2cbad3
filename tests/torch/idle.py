"""What synchronising cost, from the ground truth alone: the plainest reading of what
lull calls wasted. It knows nothing of garbage collections, waits and processors that
were busy, which own their part of a gap too."""

import bisect

ALLOCATORS = ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost")
# A call that returned so short a time before the device ran dry is to blame for it:
# clocks do not agree better.
TOLERANCE_NS = 5_000


class Idle:
    def __init__(self, truth):
        self.operations = [op for op in truth.all_ops
                           if op.kind in ("kernel", "copy", "memset")]
        self.pageable = {op.correlation for op in self.operations
                         if op.kind == "copy" and op.pageable}
        self.calls = {call.correlation: call for call in truth.calls()}
        self.owners = {}  # tid -> its calls that own idle time, by start
        for call in truth.calls():
            if self._synchronises(call) or call.name in ALLOCATORS:
                self.owners.setdefault(call.tid, []).append(call)
        self.starts = {tid: [call.start for call in calls]
                       for tid, calls in self.owners.items()}

    def _synchronises(self, call):
        return "Synchronize" in call.name or call.correlation in self.pageable

    def gaps(self):
        """(since when, until when, the call that submitted what came then)"""
        end = None
        for op in self.operations:
            if end is not None and op.start > end:
                yield end, op.start, self.calls[op.correlation]
            end = max(op.end, end or 0)

    def total(self, since):
        """From `since`, before the first operation, to the end of the last, in ns."""
        return self.operations[0].start - since + sum(b - a for a, b, _ in self.gaps())

    def wasted(self):
        """{correlation of a call that synchronises: idle time that it caused, in ns}"""
        wasted = {}
        for a, b, launch in self.gaps():
            until = min(launch.start, b)
            owners = self.owners.get(launch.tid, [])
            at = bisect.bisect_right(self.starts.get(launch.tid, []), a) - 1
            inside = at >= 0 and owners[at].end + TOLERANCE_NS > a
            opened_in = owners[at] if inside and self._synchronises(owners[at]) else None
            # Without it the host would be ahead by as long as it blocked, and no more.
            reach = min(until, 2 * opened_in.end - opened_in.start) if opened_in else a
            rest = max(0, reach - a)
            for call in owners[max(at, 0):]:
                if call.start >= until:
                    break
                own = min(call.end, until) - max(call.start, a)
                if own > 0:
                    rest -= max(0, min(call.end, reach) - max(call.start, a))
                    wasted[call.correlation] = wasted.get(call.correlation, 0) + own
            if opened_in is not None:
                wasted[opened_in.correlation] = (wasted.get(opened_in.correlation, 0)
                                                 + max(0, rest))
        return {key: ns for key, ns in wasted.items() if self._synchronises(self.calls[key])}

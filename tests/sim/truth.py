"""Reads the ground-truth logs of the simulated device.

The layout is that of tests/sim/engine/truth_format.h. As a program it prints one
JSON object per record: python3 truth.py PATH [--nested].

    truth = load("/tmp/truth")           # /tmp/truth, /tmp/truth.PID, ...
    truth.calls("cudaStreamSynchronize")  # the program's own calls, by start
    truth.ops(kind="kernel")              # operations of the devices, by start
    truth.exchanges()                     # kernels that end with those of other ranks
"""

import glob
import json
import struct
import sys

_MAGIC = 0x31485455524D4953
_VERSION = 1
_HEADER_BYTES = 4096
_RECORD_BYTES = 96
_CHUNK_BYTES = _RECORD_BYTES * 680
_HEADER = struct.Struct("<QIIqqQQ")
_RECORD = struct.Struct("<IIQqqqQQQIHHIIQII")
_NAME = struct.Struct("<IIII80s")
assert _RECORD.size == _RECORD_BYTES and _NAME.size == _RECORD_BYTES

_API, _OP, _NAME_TYPE, _EXCHANGE = 1, 2, 3, 4
_KINDS = {
    1: "kernel",
    2: "copy",
    3: "memset",
    4: "event_record",
    5: "event_wait",
    6: "host_function",
    7: "marker",
}
_COPIES = {0: "HtoH", 1: "HtoD", 2: "DtoH", 3: "DtoD"}


class Record(object):
    """One API call, device operation or exchange; its fields are attributes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __repr__(self):
        return json.dumps(self.__dict__)

    @property
    def duration(self):
        return self.end - self.start


class Truth(object):
    """What one or several processes really did."""

    def __init__(self):
        self.all_calls = []
        self.all_ops = []
        self.all_exchanges = []
        self.dropped = 0

    def calls(self, name=None, nested=False):
        """API calls by start; those made inside the libraries only if `nested`."""
        return [
            c
            for c in self.all_calls
            if (nested or c.depth == 0) and (name is None or c.name == name)
        ]

    def ops(self, kind=None, name=None):
        """Device operations by start. `name` is a part of a kernel's name."""
        return [
            o
            for o in self.all_ops
            if (kind is None or o.kind == kind) and (name is None or name in o.name)
        ]

    def exchanges(self, communicator=None, rank=None):
        """Exchanges by start: what the kernel of that correlation id and start is to its
        communicator. One that had not ended when the log was read has end 0."""
        return [
            e
            for e in self.all_exchanges
            if communicator in (None, e.communicator) and rank in (None, e.rank)
        ]

    def collectives(self):
        """Exchanges of all ranks, by (communicator, sequence)."""
        found = {}
        for one in self.all_exchanges:
            if one.sequence >= 0:
                found.setdefault((one.communicator, one.sequence), []).append(one)
        return found

    def busy(self):
        """Time of the union of kernels, copies and memsets on all devices, in ns."""
        total, end = 0, {}
        for op in self.all_ops:
            if op.kind not in ("kernel", "copy", "memset"):
                continue
            begin = max(op.start, end.get(op.device, op.start))
            total += max(0, op.end - begin)
            end[op.device] = max(end.get(op.device, op.end), op.end)
        return total


def _records(data):
    for chunk in range(_HEADER_BYTES, len(data) - _CHUNK_BYTES + 1, _CHUNK_BYTES):
        for at in range(chunk, chunk + _CHUNK_BYTES, _RECORD_BYTES):
            if data[at : at + 4] == b"\0\0\0\0":
                break
            yield at


def _names(data):
    parts, sizes = {}, {}
    for at in _records(data):
        kind, name, part, size, text = _NAME.unpack_from(data, at)
        if kind == _NAME_TYPE:
            parts.setdefault(name, {})[part] = text
            sizes[name] = size
    return {
        name: b"".join(texts[i] for i in sorted(texts))[: sizes[name]].decode()
        for name, texts in parts.items()
    }


def _call(fields, names, pid):
    (_, tid, correlation, start, end, extra, _, _, _, name, flags, depth) = fields[:12]
    result, parent = fields[13], fields[14]
    return Record(
        type="call",
        pid=pid,
        tid=tid,
        name=names.get(name, ""),
        library="runtime" if flags & 1 else "driver",
        start=start,
        end=end,  # 0: the call never returned
        blocked=extra,  # ns that the host waited for the device
        depth=depth,  # 0: called by the program, else inside another call
        correlation=correlation,
        parent=parent,  # correlation of the call around it, or 0
        result=result,
    )


def _op(fields, names, pid):
    (_, tid, correlation, start, end, extra, stream, size, handle, name) = fields[:10]
    kind, sub, device, graph, context, grid, block = fields[10:]
    kind = _KINDS.get(kind, str(kind))
    return Record(
        type="op",
        pid=pid,
        tid=tid,  # the thread that submitted it
        kind=kind,
        name=names.get(name, ""),
        copy=_COPIES[sub & 15] if kind == "copy" else "",
        pageable=bool(sub & 16),
        submitted=extra,
        start=start,
        end=end,
        device=device,
        context=context,
        stream=stream,  # 0: the legacy default stream
        graph=graph,  # id of the executable graph that it belongs to, or 0
        bytes=size,
        handle=handle,
        grid=grid,
        block=block,
        correlation=correlation,  # of the program's call that submitted it
    )


def _exchange(fields, names, pid):
    (_, kernel, correlation, start, end, sequence, stream, size, handle, name) = fields[:10]
    error, rank, ranks, calls, parent, call_names, device = fields[10:]
    return Record(
        type="exchange",
        pid=pid,
        name=names.get(kernel, ""),
        communicator=handle,  # the same on all of its ranks
        parent=parent,  # communicator that it was split from, or 0
        sequence=sequence,  # among its collectives; -1: sends and receives alone
        rank=rank,
        ranks=ranks,  # how many there are
        members=[int(m) for m in names.get(name, "").split(",") if m],  # in the first one
        calls=names.get(call_names, "").split(","),
        bytes=size,
        start=start,
        end=end,  # 0: not known yet
        error=error,  # ncclResult_t
        stream=stream,
        device=device,
        correlation=correlation,  # of its kernel
    )


def read(path, truth=None):
    """Adds the log at `path` to `truth` (a new one by default), and returns it."""
    truth = truth or Truth()
    with open(path, "rb") as file:
        data = file.read()
    magic, version, pid, _, _, chunks, dropped = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError("%s is no ground-truth log of version %d" % (path, _VERSION))
    data = data[: _HEADER_BYTES + chunks * _CHUNK_BYTES]
    names = _names(data)
    for at in _records(data):
        fields = _RECORD.unpack_from(data, at)
        if fields[0] == _API:
            truth.all_calls.append(_call(fields, names, pid))
        elif fields[0] == _OP:
            truth.all_ops.append(_op(fields, names, pid))
        elif fields[0] == _EXCHANGE:
            truth.all_exchanges.append(_exchange(fields, names, pid))
    truth.dropped += dropped
    truth.all_calls.sort(key=lambda r: (r.start, r.correlation))
    truth.all_ops.sort(key=lambda r: (r.start, r.correlation))
    truth.all_exchanges.sort(key=lambda r: (r.start, r.correlation))
    return truth


def load(path):
    """The logs of every process that ran with LULL_SIM_LOG=`path`."""
    truth = Truth()
    for name in sorted(glob.glob(glob.escape(path) + "*")):
        read(name, truth)
    return truth


def main(arguments):
    paths = [a for a in arguments if not a.startswith("--")]
    if len(paths) != 1:
        sys.exit("usage: truth.py PATH [--nested]")
    truth = load(paths[0])
    records = truth.calls(nested="--nested" in arguments) + truth.ops() + truth.exchanges()
    for record in sorted(records, key=lambda r: r.start):
        print(record)


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""What a trace of Perfetto's format has, read by Perfetto's own schema (PyPI's perfetto), as
JSON. Runs in the peers' environment (install).

  perfetto_rows.py TRACE"""

import collections
import gzip
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def unknown_fields(message):
    """True where it has a field that the schema does not know."""
    from google.protobuf.unknown_fields import UnknownFieldSet
    if len(UnknownFieldSet(message)) > 0:
        return True
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE:
            continue
        for one in (value if field.is_repeated else [value]):
            if unknown_fields(one):
                return True
    return False


def main():
    path = sys.argv[1]
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        trace = schema.Trace.FromString(file.read())
    event = schema.TrackEvent
    tracks, texts = {}, collections.defaultdict(dict)
    edges, counters, flows = [], collections.defaultdict(list), collections.Counter()
    clocks, unknown = {}, 0
    for order, packet in enumerate(trace.packet):
        unknown += unknown_fields(packet)
        for clock in packet.clock_snapshot.clocks:
            clocks[clock.clock_id] = clock.timestamp
        for table in ("event_names", "event_categories", "debug_annotation_names"):
            for text in getattr(packet.interned_data, table):
                texts[table][text.iid] = text.name
        for text in packet.interned_data.debug_annotation_string_values:
            texts["values"][text.iid] = text.str.decode()
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid in tracks:
                raise SystemExit(f"two tracks are {track.uuid}")
            if track.parent_uuid and track.parent_uuid not in tracks:
                raise SystemExit(f"{track.name} lies below nothing")
            kind = ("process" if track.HasField("process") else
                    "thread" if track.HasField("thread") else "track")
            tracks[track.uuid] = {
                "kind": kind, "parent": track.parent_uuid,
                "name": (track.process.process_name if kind == "process" else
                         track.thread.thread_name if kind == "thread" else track.name)}
        if not packet.HasField("track_event"):
            continue
        told = packet.track_event
        if told.track_uuid not in tracks:
            raise SystemExit("an event on no track")
        if told.type == event.TYPE_COUNTER:
            value = (told.double_counter_value if told.HasField("double_counter_value")
                     else told.counter_value)
            counters[tracks[told.track_uuid]["name"]].append((packet.timestamp, value))
            continue
        for flow in told.flow_ids:
            flows[flow, "from"] += 1
        for flow in told.terminating_flow_ids:
            flows[flow, "to"] += 1
        edges.append((packet.timestamp, order, told))
    rows, open_slices = [], collections.defaultdict(list)
    # As trace_processor does: sorted by time, an end is of what began last on its track.
    for time, _, told in sorted(edges, key=lambda edge: edge[:2]):
        stack = open_slices[told.track_uuid]
        if told.type == event.TYPE_SLICE_BEGIN:
            arguments = {}
            for note in told.debug_annotations:
                value = (texts["values"][note.string_value_iid] if note.string_value_iid
                         else note.int_value if note.HasField("int_value")
                         else note.uint_value)
                arguments[texts["debug_annotation_names"][note.name_iid]] = value
            stack.append((time, {
                "name": told.name or texts["event_names"][told.name_iid],
                "category": [texts["event_categories"][i] for i in told.category_iids],
                "track": tracks[told.track_uuid]["name"],
                "above": tracks[tracks[told.track_uuid]["parent"]]["name"]
                         if tracks[told.track_uuid]["parent"] else "",
                "start": time, "depth": len(stack), "args": arguments}))
        elif told.type == event.TYPE_SLICE_END:
            start, row = stack.pop()
            row["ns"] = time - start
            rows.append(row)
    still_open = sum(len(stack) for stack in open_slices.values())
    print(json.dumps({
        "rows": rows, "tracks": list(tracks.values()), "counters": counters,
        "open": still_open, "clocks": clocks, "unknown_fields": unknown,
        "flows_from": sum(1 for _, end in flows if end == "from"),
        "flows_to": sum(1 for _, end in flows if end == "to"),
        "flows_whole": sum(1 for flow, end in flows
                           if end == "to" and (flow, "from") in flows)}))


if __name__ == "__main__":
    main()

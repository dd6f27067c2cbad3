#!/usr/bin/env python3
"""Checks that includes follow the layers, and prints every include that does not.

A folder may include itself and what ALLOWED names for it. What runs inside the
target (preload/) sees nothing else of ours; outside of it only the relay sees
shared memory; only relay, collector and cli see gRPC.

usage: tools/check_layering.py [ROOT]     exit status 1 if there are offenders
"""

import re
import sys
from pathlib import Path

RELAY = {"preload/abi", "proto", "daemon/base", "daemon/connection", "daemon/procfs"}
COLLECTOR = {"proto", "daemon/base", "daemon/aggregate", "daemon/blame", "daemon/steps",
             "daemon/storage"}
JOB = {"proto", "daemon/base", "daemon/connection", "daemon/procfs", "daemon/words",
       "daemon/check", "daemon/compare", "cli/base", "cli/client", "cli/render", "daemon/attach/examine",
       "daemon/import",
       "daemon/attach/inject", "daemon/relay", "daemon/relay/control",
       "daemon/relay/deliver", "daemon/relay/process",
       # What it says to a shim that it has brought into a process.
       "preload/abi/attach.h", "preload/abi/version.h"}

# Layer -> layers whose headers it may include, besides its own; or single headers.
ALLOWED = {
    "preload": set(),
    "proto": set(),
    "daemon/base": set(),
    "daemon/connection": {"daemon/base"},
    "daemon/procfs": {"daemon/base"},
    "daemon/aggregate": {"daemon/base"},
    "daemon/blame": {"daemon/base"},
    "daemon/steps": {"daemon/base"},
    "daemon/ranks": {"daemon/base"},
    "daemon/storage": {"daemon/base", "daemon/aggregate", "proto"},
    # The relay's rooms, from the ground up; options.h is in none of them.
    "daemon/relay/control": RELAY | {"daemon/steps"},
    "daemon/relay": RELAY | {"daemon/relay/control"},
    "daemon/relay/symbols": RELAY,
    "daemon/relay/deliver": RELAY | {"daemon/relay", "daemon/relay/symbols"},
    "daemon/relay/samples": RELAY | {"daemon/relay/symbols"},
    "daemon/relay/read": RELAY | {"daemon/relay", "daemon/relay/control",
                                  "daemon/relay/deliver", "daemon/relay/samples",
                                  "daemon/relay/symbols"},
    "daemon/relay/process": RELAY | {"daemon/relay", "daemon/relay/control",
                                     "daemon/relay/deliver", "daemon/relay/read",
                                     "daemon/relay/symbols/async_symbolizer.h"},
    # Traces of others on the way that recorded events take.
    "daemon/import": {"proto", "daemon/base", "preload/abi", "daemon/relay",
                      "daemon/relay/deliver", "daemon/relay/read/batch_builder.h",
                      "daemon/relay/samples/run_delay.h"},
    "daemon/attach/inject": {"daemon/base", "daemon/procfs"},
    # One pure file of the shim's: both judge a command line alike.
    "daemon/attach/examine": {"daemon/base", "daemon/procfs", "preload/abi",
                              "preload/entry/process_kind.h"},
    "daemon/collector/ingest": COLLECTOR,
    "daemon/collector/serve": COLLECTOR | {"daemon/collector/ingest", "daemon/query",
                                            "daemon/export", "daemon/http",
                                            "daemon/fleet", "daemon/metrics", "daemon/words"},
    # Totals of runs for Prometheus and OTLP; pure.
    "daemon/metrics": {"proto", "daemon/base", "daemon/aggregate", "daemon/words",
                       "daemon/query"},
    # Totals of jobs for ClickHouse.
    "daemon/fleet": {"proto", "daemon/base", "daemon/http", "daemon/query", "daemon/storage",
                     "daemon/words"},
    # HTTP of one port, and to others; who gets in and what is served is somebody else's.
    "daemon/http": {"daemon/base"},
    "daemon/words": {"proto"},
    "daemon/advice": {"proto", "daemon/words"},
    "daemon/compare": {"proto", "daemon/base", "daemon/words"},
    "daemon/check": {"proto", "daemon/base", "daemon/words", "daemon/compare"},
    "daemon/query": {"proto", "daemon/base", "daemon/advice", "daemon/aggregate",
                     "daemon/ranks", "daemon/steps",
                     "daemon/storage"},
    "daemon/export": {"proto", "daemon/base", "daemon/aggregate", "daemon/storage",
                      "daemon/query", "daemon/words"},
    "cli/render": {"proto", "daemon/base", "daemon/check", "daemon/compare", "daemon/words",
                   "daemon/attach/examine", "cli/doctor/check.h"},
    # The page: what is rendered, once more, for a browser.
    "cli/html": {"proto", "daemon/base", "daemon/compare", "daemon/words", "cli/render"},
    # A protocol for agents, without input and output.
    "cli/mcp": {"cli/render/json.h"},
    # Who gets into `lull web`.
    "cli/web": {"daemon/base", "daemon/http"},
    # A terminal, and what it shows.
    "cli/top": {"proto", "daemon/base", "daemon/words", "cli/render"},
    "cli/base": {"daemon/base", "daemon/procfs", "cli/render/colour.h"},
    "cli/client": {"proto", "daemon/base", "daemon/connection", "daemon/procfs",
                   "cli/base"},
    "cli/job": JOB,
    "cli/doctor": {"daemon/base", "daemon/procfs", "daemon/words", "cli/base", "cli/client",
                   "cli/render/gpu_words.h", "daemon/attach/examine",
                   "daemon/relay/control"},
    "cli/commands": JOB | {"cli/doctor", "cli/html", "cli/job", "cli/mcp", "cli/top",
                           "cli/web", "daemon/http"},
    "cli": JOB | {"cli/commands", "daemon/relay/process", "daemon/relay/symbols"},
}
MAY_USE_GRPC = ("daemon/connection", "daemon/relay/deliver", "daemon/collector/serve",
                "cli/client", "cli/job")
# The ABI is what both ends of the shared memory compile: it stands on its own.
ABI = "preload/abi"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
GENERATED = re.compile(r"^(proto/)?(events|ingest|control|fleet|query|relay_internal|perfetto|otlp)(\.grpc)?\.pb\.h$")
OURS = ("preload/", "proto/", "daemon/", "cli/", "tests/")


def layer_of(path):
    """The layer that a file or include path belongs to, or None."""
    if GENERATED.match(path):
        return "proto"
    if path.startswith(ABI + "/"):
        return ABI
    for layer in sorted(ALLOWED, key=len, reverse=True):
        if path.startswith(layer + "/"):
            return layer
    return None


def complaint(layer, target, quoted):
    """Why a file of `layer` must not include `target`, or None."""
    if layer is None:
        return "the file belongs to no layer"
    if target.startswith(("grpc/", "grpcpp/")) or target.endswith(".grpc.pb.h"):
        return None if layer in MAY_USE_GRPC else f"{layer} must not see gRPC"
    other = layer_of(target)
    if other is None:
        if target.startswith(OURS):
            return f"{target} belongs to no layer"
        if quoted == '"' and "/" not in target:
            return "includes of ours are written from the root of the tree"
        if layer in ("preload", ABI) and target.startswith(("absl/", "google/")):
            return "the shim needs libc alone"
        return None
    if other == layer or not {other, target}.isdisjoint(ALLOWED.get(layer, ())):
        return None
    if layer == "preload" and other == ABI:
        return None
    return f"{layer} must not include {other}"


def offenders(root):
    for top in ("preload", "proto", "daemon", "cli"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".h", ".cc", ".c", ".inc"):
                continue
            name = path.relative_to(root).as_posix()
            layer = layer_of(name)
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                why = match and complaint(layer, match[2], match[1])
                if why:
                    yield f"{name}:{number}: {line.strip()}: {why}"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(offenders(root))
    print("\n".join(found) if found else "layering: no offenders")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

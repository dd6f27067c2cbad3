"""Compares what lull reports about a run of train.py with what train.py measured.

Used by tools/demo, which prints the comparison, and by
tests/integration/demo_test.py, which lives by it.
"""

import json
import subprocess

TOLERANCE = 0.05


def query(lull, verb, job, *options):
    """The answer of `lull VERB JOB --json` about the whole run as a dictionary."""
    command = [lull, verb, job, "--json", "--top", "0", "--phase", "all", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def data_wait_ms(lull, job):
    rows = query(lull, "waits", job)["host_waits"]
    return sum(row["total_ms"] for row in rows if row["kind"] == "data")


def before_first_line(row):
    """Did this collection run while the interpreter still imported its site
    module, so before the script's own timer was there?"""
    files = [frame["file"] for frame in row["stack"]]
    in_site = any(f == "<frozen site>" or f.endswith("/site.py") for f in files)
    return in_site and not any(f.endswith("train.py") for f in files)


def gc_totals(lull, job):
    """(count, ms) of the collections since the first line of the script."""
    rows = [row for row in query(lull, "gc", job, "--by", "stack")["gc_pauses"]
            if not before_first_line(row)]
    return sum(row["count"] for row in rows), sum(row["total_ms"] for row in rows)


def within(measured, expected, tolerance=TOLERANCE):
    return abs(measured - expected) <= tolerance * expected


def compare(lull, job, result):
    """[(what, as the script measured it, as lull reports it, good?)]"""
    script_wait = result["data_wait_s"] * 1e3
    script_gc = result["gc"]["total_s"] * 1e3
    lull_wait = data_wait_ms(lull, job)
    lull_count, lull_gc = gc_totals(lull, job)
    return [
        ("waiting for data, ms (within 5 %)", f"{script_wait:.1f}", f"{lull_wait:.1f}",
         within(lull_wait, script_wait)),
        ("garbage collections (equal)", str(result["gc"]["count"]), str(lull_count),
         lull_count == result["gc"]["count"]),
        ("garbage collection, ms (within 5 %)", f"{script_gc:.1f}", f"{lull_gc:.1f}",
         within(lull_gc, script_gc)),
    ]

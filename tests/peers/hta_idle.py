#!/usr/bin/env python3
"""Idle time of the GPUs of one trace as HTA 0.5 tells it, in us, as JSON. Runs in HTA's own
environment (install).

  hta_idle.py TRACE"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import warnings


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        # It reads folders of ranks.
        shutil.copy(sys.argv[1], os.path.join(folder, "rank-0.json.gz"))
        from hta.trace_analysis import TraceAnalysis
        analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=True)
        row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    print(json.dumps({"idle_us": float(row["idle_time(us)"]),
                      "busy_us": float(row["compute_time(us)"] + row["non_compute_time(us)"])}))


if __name__ == "__main__":
    main()

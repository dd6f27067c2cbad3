#!/usr/bin/env python3
"""Idle time of the GPUs of one trace as HTA 0.5 tells it, in us, as JSON; of several, which are
ranks, which part of each one's communication its computation covers. Runs in HTA's own environment
(install).

  hta_idle.py TRACE...     (the n-th is rank n)"""

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
        for rank, path in enumerate(sys.argv[1:]):
            shutil.copy(path, os.path.join(folder, f"rank-{rank}.json.gz"))
        from hta.trace_analysis import TraceAnalysis
        analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=True)
        if len(sys.argv) > 2:
            overlap = analysis.get_comm_comp_overlap(visualize=False)
            told = {int(row["rank"]): float(row["comp_comm_overlap_pctg"])
                    for _, row in overlap.iterrows()}
            print(json.dumps(told), file=sys.__stdout__)
            return
        row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    print(json.dumps({"idle_us": float(row["idle_time(us)"]),
                      "busy_us": float(row["compute_time(us)"] + row["non_compute_time(us)"])}))


if __name__ == "__main__":
    main()

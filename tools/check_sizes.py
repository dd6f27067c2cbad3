#!/usr/bin/env python3
"""Checks that files stay small: one file has one job that a reader holds in mind.

A header of the product has at most 130 lines, any other source file 400. LARGER names
the files that may have more, why, and how many: such a file may shrink, not grow. An
entry that is no longer needed is an offender, too.

usage: tools/check_sizes.py [ROOT]     exit status 1 if there are offenders
"""

import sys
from pathlib import Path

HEADER, SOURCE = 130, 400

# Definitions that belong on one page: whoever reads one of them needs the others.
ONE_PAGE = "one list of definitions, read as a whole"
# To be cut by duty; until then they do not grow.
TO_BE_CUT = "to be cut by duty"
LARGER = {
    "preload/abi/arena.h": (150, ONE_PAGE),
    "preload/abi/event.h": (194, ONE_PAGE),
    "preload/abi/hook_list.h": (240, ONE_PAGE),
    "preload/abi/segment.h": (245, ONE_PAGE),
    "preload/cupti/types.h": (210, ONE_PAGE),
    "daemon/aggregate/event.h": (151, ONE_PAGE),
    "daemon/aggregate/series.h": (160, ONE_PAGE),
    "daemon/blame/blame.h": (230, ONE_PAGE),
    "daemon/import/record.h": (155, ONE_PAGE),
    "daemon/storage/rows.h": (197, ONE_PAGE),
    "daemon/attach/inject/arch.h": (160, "what one processor needs, for two of them"),
    "daemon/attach/inject/arch_aarch64.cc": (450, "what one processor needs"),
    "daemon/storage/database.h": (140, "templates around SQLite"),
    "preload/hooks/guard.h": (145, "inlined into every hook"),
    "daemon/relay/deliver/spool.h": (140, TO_BE_CUT),
    "daemon/relay/read/target.h": (165, TO_BE_CUT),
    "preload/cupti/tracer.h": (200, TO_BE_CUT),
    "daemon/export/perfetto_writer.cc": (420, TO_BE_CUT),
    "daemon/import/translate.cc": (520, TO_BE_CUT),
    "daemon/relay/samples/sampler.cc": (460, TO_BE_CUT),
}


def offenders(root):
    seen = set()
    for top in ("preload", "daemon", "cli"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".h", ".cc", ".c"):
                continue
            name = path.relative_to(root).as_posix()
            lines = path.read_text().count("\n")
            bound = HEADER if path.suffix == ".h" else SOURCE
            allowed = bound
            if name in LARGER:
                seen.add(name)
                allowed = LARGER[name][0]
                if lines <= bound:
                    yield f"{name}: {lines} lines: its entry in LARGER is not needed any more"
            if lines > allowed:
                yield f"{name}: {lines} lines, more than {allowed}"
    for name in sorted(set(LARGER) - seen):
        if (root / "tools" / "check_sizes.py").exists():
            yield f"{name}: is in LARGER, and there is no such file"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(offenders(root))
    print("\n".join(found) if found else "sizes: no offenders")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

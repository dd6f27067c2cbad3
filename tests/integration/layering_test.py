#!/usr/bin/env python3
"""The checks of layers and sizes pass on this tree, and catch every violation."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CHECK = ROOT / "tools" / "check_layering.py"
SIZES = ROOT / "tools" / "check_sizes.py"
sys.path.insert(0, str(ROOT / "tools"))
from check_sizes import LARGER  # noqa: E402

VIOLATIONS = {
    "preload/hooks/a.cc": '#include "daemon/base/status.h"',
    "preload/ring/b.cc": "#include <absl/strings/str_cat.h>",
    "preload/abi/c.h": '#include "preload/ring/writer.h"',
    "daemon/relay/read/d.cc": '#include "preload/ring/writer.h"',
    "daemon/relay/symbols/da.cc": '#include "daemon/relay/read/target.h"',
    "daemon/relay/control/db.cc": '#include "daemon/relay/options.h"',
    "daemon/relay/read/dc.cc": "#include <grpcpp/grpcpp.h>",
    "daemon/collector/ingest/ea.cc": '#include "daemon/collector/serve/gate.h"',
    "daemon/collector/f.cc": '#include "daemon/base/status.h"',
    "daemon/collector/serve/e.cc": '#include "preload/abi/event.h"',
    "daemon/aggregate/f.cc": "#include <grpcpp/grpcpp.h>",
    "daemon/aggregate/g.cc": '#include "daemon/storage/store.h"',
    "daemon/storage/h.h": '#include "ingest.grpc.pb.h"',
    "daemon/query/i.cc": '  #  include "daemon/relay/read/target.h"',
    "daemon/attach/examine/ja.cc": '#include "preload/entry/state.h"',
    "cli/job/ia.cc": '#include "cli/commands/verbs.h"',
    "cli/commands/j.cc": '#include "preload/abi/event.h"',
    "daemon/base/k.h": '#include "events.pb.h"',
    "cli/render/l.cc": '#include "text.h"',
}
ALLOWED = {
    "preload/hooks/m.cc": '#include "preload/abi/event.h"\n#include "preload/ring/writer.h"',
    "daemon/relay/deliver/n.cc": '#include "preload/abi/ring.h"\n#include <grpcpp/grpcpp.h>',
    "daemon/collector/serve/o.cc": '#include "daemon/aggregate/syncs.h"\n#include "query.grpc.pb.h"',
    "daemon/attach/examine/oa.cc": '#include "preload/entry/process_kind.h"',
    "cli/commands/p.cc": '#include "daemon/relay/process/relay.h"\n#include <CLI/CLI.hpp>',
}


def check(root, script=CHECK):
    done = subprocess.run([sys.executable, script, root], stdout=subprocess.PIPE)
    return done.returncode, done.stdout.decode()


class Layering(unittest.TestCase):
    def check_files(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text + "\n")
            return check(folder)

    def test_this_tree_has_no_offenders(self):
        self.assertEqual(check(ROOT), (0, "layering: no offenders\n"))

    def test_every_violation_is_named_with_its_file_and_line(self):
        for name, text in VIOLATIONS.items():
            with self.subTest(file=name, include=text):
                status, output = self.check_files({**ALLOWED, name: "\n" + text})
                self.assertEqual(status, 1)
                self.assertEqual([line.split(": ")[0] for line in output.splitlines()],
                                 [f"{name}:2"])

    def test_what_is_allowed_passes(self):
        self.assertEqual(self.check_files(ALLOWED)[0], 0)


class Sizes(unittest.TestCase):
    def check_lines(self, lines):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in lines.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x\n" * count)
            return check(folder, SIZES)

    def test_this_tree_has_no_offenders(self):
        self.assertEqual(check(ROOT, SIZES), (0, "sizes: no offenders\n"))

    def test_every_large_file_is_named(self):
        for name, count in [("cli/base/a.h", 131), ("daemon/base/b.cc", 401),
                            ("preload/ring/c.c", 401)]:
            with self.subTest(file=name):
                status, output = self.check_lines({name: count, "cli/d.cc": 400})
                self.assertEqual((status, output.split(":")[0]), (1, name))

    def test_a_file_that_may_be_larger_must_not_grow_and_must_need_it(self):
        name = "preload/abi/event.h"
        most = LARGER[name][0]
        self.assertEqual(self.check_lines({name: most})[0], 0)
        self.assertEqual(self.check_lines({name: most + 1})[0], 1)
        self.assertEqual(self.check_lines({name: 130})[0], 1)


if __name__ == "__main__":
    unittest.main()

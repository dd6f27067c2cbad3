"""Runs modules of CPython's own test suite with and without lull and compares the
outcome of every single test.

Some of these tests depend on timing and fail now and then on a busy machine, with
or without lull. So a difference is not believed at once: the module is run again
both ways, up to RETRIES times, and a test counts as changed only if its outcome
under lull was never among its outcomes alone.
"""

import os
import signal
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

RETRIES = 2

# A shell that starts us in the background has SIGINT ignored, the tests inherit it,
# and those that interrupt themselves would wait for ever. What is caught here is
# back at its default after exec.
signal.signal(signal.SIGINT, signal.default_int_handler)


def outcomes(run, python, module):
    """(exit status, {test id: "ok", "failure", "error" or "skipped"}, output)"""
    with tempfile.TemporaryDirectory(prefix="lull-suite-") as folder:
        report = os.path.join(folder, "report.xml")
        done = run([python, "-m", "test", "--junit-xml", report, module],
                   cwd=folder, timeout=1500)
        results = {}
        if os.path.exists(report):
            for case in ElementTree.parse(report).iter("testcase"):
                name = f"{case.get('classname', '')}.{case.get('name')}"
                kinds = [child.tag for child in case
                         if child.tag in ("failure", "error", "skipped")]
                results[name] = kinds[0] if kinds else "ok"
        return done.status, results, done.stdout + done.stderr


def check_module(test, host, python, module):
    seen_alone, seen_guest = {}, {}
    for _ in range(1 + RETRIES):
        with ThreadPoolExecutor() as pool:  # side by side: they sleep most of the time
            runs = [pool.submit(outcomes, run, python, module)
                    for run in (host.alone, host.with_lull)]
        status_alone, alone, _ = runs[0].result()
        status_guest, guest, output = runs[1].result()
        test.assertTrue(alone, f"{module} reported no tests without lull")
        for seen, results in ((seen_alone, alone), (seen_guest, guest)):
            for name, outcome in results.items():
                seen.setdefault(name, set()).add(outcome)
        changed = {name for name in set(seen_alone) | set(seen_guest)
                   if not seen_guest.get(name, {"missing"}) & seen_alone.get(name, {"missing"})}
        if not changed and status_guest == status_alone:
            return len(alone)
    test.assertEqual(changed, set(), f"tests whose outcome lull changed\n{output[-6000:]}")
    test.assertEqual(status_guest, status_alone, output[-6000:])

"""What the tests of `lull` as a whole have in common: folders of their own, and a
fake collector in place of lulld."""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGUMENTS = argparse.Namespace()


def end_all(folder):
    """Kills what was started with `folder` in its environment. Relays that have not delivered
    and collectors outlive lull; they make files in a folder while it is being removed, and
    the folder anew."""
    def is_one(pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return folder.encode() in file.read()
        except OSError:
            return False  # gone by now, or another user's

    while found := [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_one(pid)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def remove(folder):
    end_all(folder)
    shutil.rmtree(folder)


def belongings(test, user):
    """A folder of that user's own, with lull and the shim: the build may lie where nobody but
    its owner may look."""
    folder = tempfile.mkdtemp(prefix="lull-t-")
    test.addCleanup(remove, folder)
    os.chown(folder, user, user)
    beside = os.path.dirname(ARGUMENTS.lull)
    shim = ARGUMENTS.preload or next(
        path for path in (os.path.join(beside, "../lib/lull/liblull.so"),
                          os.path.join(beside, "../preload/liblull.so")) if os.path.exists(path))
    copies = [shutil.copy(path, folder) for path in (ARGUMENTS.lull, shim)]
    for path in copies:
        os.chmod(path, 0o755)
    return folder, *copies


class LullCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lull-t-")
        self.runtime = os.path.join(self.folder, "run")
        self.environment = dict(os.environ, LULL_RUNTIME_DIR=self.runtime,
                                XDG_DATA_HOME=os.path.join(self.folder, "data"))
        for name in ("LD_PRELOAD", "LULL_SOCKET", "LULL_COLLECTOR", "LULL_TOKEN_FILE",
                     "LULL_TLS_CA", "NO_COLOR"):
            self.environment.pop(name, None)
        if ARGUMENTS.preload:
            self.environment["LULL_PRELOAD_LIBRARY"] = ARGUMENTS.preload
        self.processes = []
        self.addCleanup(self.clean_up)  # runs also when a setUp below fails half-way

    def clean_up(self):
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        remove(self.folder)

    def start_collector(self, token=""):
        """Starts a fake collector and makes it the default one."""
        address = f"unix:{self.folder}/fake.sock"
        process = subprocess.Popen([ARGUMENTS.fake_collector, address] + ([token] if token else []),
                                   stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.environment["LULL_COLLECTOR"] = address
        return address

    def lull(self, *arguments, program=None, **options):
        """Runs lull to its end."""
        options = {"env": self.environment, "capture_output": True, "text": True,
                   "timeout": 60, **options}
        return subprocess.run([program or ARGUMENTS.lull, *arguments], **options)

    def start_lull(self, *arguments, **options):
        options = {"env": self.environment, "stdout": subprocess.PIPE, **options}
        process = subprocess.Popen([ARGUMENTS.lull, *arguments], **options)
        self.processes.append(process)
        return process

    def wait_until(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.01)
        self.fail(f"after {seconds} s still not: {what}")


# Makes what follows the first process of a PID namespace, as in a container.
IN_CONTAINER = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]


def containers_work():
    return subprocess.run([*IN_CONTAINER, "true"], capture_output=True,
                          check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lull", required=True)
    parser.add_argument("--fake-collector", required=True)
    parser.add_argument("--puppet")
    parser.add_argument("--preload", help="the shim, when it does not lie beside lull")
    _, rest = parser.parse_known_args(namespace=ARGUMENTS)
    for signal_number in (signal.SIGINT, signal.SIGQUIT):  # ctest may run in background
        signal.signal(signal_number, signal.default_int_handler
                      if signal_number == signal.SIGINT else signal.SIG_DFL)
    unittest.main(argv=[sys.argv[0], *rest])

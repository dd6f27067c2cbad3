#!/usr/bin/env python3
"""lull in images that it was not built in: prefix, attach and report, from each package.

LULL_DIST      folder with the wheel, the .deb and the .tar.zst (tools/packages)
LULL_IMAGES    folder of root file systems (tests/images/make)
"""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin")
DIST = os.environ["LULL_DIST"]
IMAGES = os.environ["LULL_IMAGES"]


def package(pattern):
    (path,) = glob.glob(os.path.join(DIST, pattern))
    return path


class Image:
    """A root file system with lull in it, in which commands run."""

    def __init__(self, name):
        self.root = os.path.join(IMAGES, name)
        self.undo = contextlib.ExitStack()
        for kind, place in (("proc", "proc"), ("tmpfs", "dev/shm")):
            os.makedirs(self.path(place), exist_ok=True)
            subprocess.run(["mount", "-t", kind, kind, self.path(place)], check=True)
            self.undo.callback(subprocess.run, ["umount", "-l", self.path(place)], check=True)
        shutil.rmtree(self.path("tmp/lull"), ignore_errors=True)
        os.makedirs(self.path("tmp/lull/run"), mode=0o700)

    def close(self):
        for folder in glob.glob("/proc/[0-9]*/root"):  # collectors that idle
            with contextlib.suppress(OSError):
                if os.readlink(folder) == self.root:
                    os.kill(int(folder.split("/")[2]), 15)
        self.undo.close()

    def path(self, inside):
        return os.path.join(self.root, inside)

    def put(self, file):
        """The path of a copy inside."""
        shutil.copy(file, self.path("tmp"))
        return "/tmp/" + os.path.basename(file)

    def unpack(self):
        subprocess.run(["tar", "--zstd", "-xf", package("*.tar.zst"), "--strip-components=1",
                        "-C", self.root], check=True)

    @staticmethod
    def environment():
        return {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
                "OPENSSL_CONF": "/tmp/openssl.cnf",
                "HOME": "/tmp/lull",  # without one Python itself asks libc for a name
                "LULL_RUNTIME_DIR": "/tmp/lull/run", "XDG_DATA_HOME": "/tmp/lull/data"}

    def start(self, *command, **more):
        return subprocess.Popen([CHROOT, self.root, *command], env=self.environment(),
                                text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def execute(self, *command):
        done = self.start(*command)
        done.output, done.errors = done.communicate(timeout=300)
        return done


class In(unittest.TestCase):
    """What is asked in every image; `guest` has the command and its exit status."""

    image = guest = status = None

    @classmethod
    def enter(cls, name):
        cls.image = Image(name)
        cls.addClassCleanup(cls.image.close)

    def lull(self, *arguments, status=0):
        done = self.image.execute("lull", *arguments)
        self.assertEqual(done.returncode, status, done.errors)
        return done

    def attach(self, status=0):
        """What `lull attach` says of a guest, which it leaves alone."""
        job = self.image.start(*self.guest)
        try:
            self.assertEqual(job.stdout.readline(), "ready\n")
            time.sleep(0.5)
            done = self.lull("attach", str(job.pid), "--for", "3s", "--name", "attached",
                             status=status)
            self.assertIsNone(job.poll())
        finally:
            _, errors = job.communicate(timeout=60)
        self.assertEqual((job.returncode, errors), (self.status, ""))
        return done

    def run_with_prefix(self):
        done = self.lull("run", "--name", "prefixed", "--", *self.guest, status=self.status)
        self.assertEqual(done.output, "ready\n")
        return done

    def test_version(self):
        self.assertRegex(self.lull("--version").output, r"^lull [0-9.]+\ncommit ")


class Recorded:
    """Where there is a glibc that we know."""

    def check_report(self, job):
        waits = json.loads(self.lull("waits", job, "--json").output)
        self.assertTrue("loader.py" in json.dumps(waits["host_waits"]), waits)
        self.assertIn("Nothing lost", self.lull("report", job).output)

    def test_prefix(self):
        self.run_with_prefix()
        self.check_report("prefixed")

    def test_attach(self):
        self.attach()
        self.check_report("attached")

    def test_native_stacks(self):
        self.assertRegex(self.lull("doctor").output, r"libunwind +ok +/.*lib/lull/libunwind")


class PassedThrough:
    """Where there is none: the job runs, and is told apart from a complete one."""

    def test_prefix(self):
        done = self.run_with_prefix()
        self.assertIn("0 processes reported", done.errors)

    def test_attach_is_refused(self):
        self.assertRegex(self.attach(status=125).errors, self.refusal)


class Debian11(Recorded, In):
    """glibc 2.31, CPython 3.9, PyTorch 1.7; the wheel."""

    guest = ("python3", "/tmp/loader.py")
    status = 5

    @classmethod
    def setUpClass(cls):
        cls.enter("debian11")
        wheel = cls.image.put(package("*.whl"))
        done = cls.image.execute("pip3", "install", "--force-reinstall", "--no-index", wheel)
        if done.returncode != 0:
            raise AssertionError(done.errors)
        cls.image.put(os.path.join(HERE, "loader.py"))


class Debian12(Recorded, In):
    """glibc 2.36, CPython 3.11; the .deb."""

    guest = ("python3", "/tmp/loader.py")
    status = 5

    @classmethod
    def setUpClass(cls):
        cls.enter("debian12")
        done = cls.image.execute("dpkg", "-i", cls.image.put(package("*.deb")))
        if done.returncode != 0:
            raise AssertionError(done.errors)
        cls.image.put(os.path.join(HERE, "loader.py"))

    def test_nothing_of_the_image_is_loaded_into_lull(self):
        """A service of names that nsswitch.conf lists, and a provider that OpenSSL's
        configuration names."""
        library = "/tmp/loaded.so"
        with tempfile.TemporaryDirectory() as folder:
            built = os.path.join(folder, "loaded.so")
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", built,
                            os.path.join(HERE, "loaded.c")], check=True)
            self.image.put(built)
        service = self.image.path("lib/x86_64-linux-gnu/libnss_loaded.so.2")
        shutil.copy(self.image.path(library[1:]), service)
        self.addCleanup(os.remove, service)
        self.replace("etc/nsswitch.conf", "passwd: loaded files\nhosts: loaded files dns\n"
                     "services: loaded files\n")
        self.replace("tmp/openssl.cnf", "openssl_conf = init\n[init]\nproviders = all\n"
                     f"[all]\nloaded = one\n[one]\nmodule = {library}\nactivate = 1\n")
        mark = self.image.path("tmp/loaded")
        # The traps work: this interpreter asks the image's libc, and its OpenSSL.
        for use in ("import pwd; pwd.getpwall()", "import ssl; ssl.create_default_context()"):
            self.image.execute("python3", "-c", use)
            self.assertTrue(os.path.exists(mark), use)
            os.remove(mark)
        self.run_with_prefix()
        self.lull("jobs")
        self.lull("jobs", "--collector", "localhost:1", status=1)
        self.assertFalse(os.path.exists(mark), "lull loaded a library of the image")

    def replace(self, name, text):
        path = self.image.path(name)
        before = None
        if os.path.exists(path):
            with open(path) as file:
                before = file.read()
        self.addCleanup(self.write, path, before)
        self.write(path, text)

    @staticmethod
    def write(path, text):
        if text is None:
            os.remove(path)
            return
        with open(path, "w") as file:
            file.write(text)


class Empty(PassedThrough, In):
    """No libc, no shell: a static program alone; the .tar.zst."""

    guest = ("/guest",)
    status = 7
    refusal = "static"

    @classmethod
    def setUpClass(cls):
        cls.enter("empty")
        cls.image.unpack()


class Musl(PassedThrough, In):
    """Another libc; the .tar.zst."""

    guest = ("/guest",)
    status = 7
    refusal = "musl"

    @classmethod
    def setUpClass(cls):
        cls.enter("musl")
        cls.image.unpack()


class Environment(unittest.TestCase):
    """The wheel in a virtual environment of this machine."""

    def test_lull_is_on_its_path_and_off_it_again(self):
        folder = os.path.join(IMAGES, "environment")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = os.path.join(folder, "bin", "pip")
        subprocess.run([pip, "install", "-q", "--no-index", package("*.whl")], check=True)
        os.mkdir(os.path.join(folder, "run"), mode=0o700)
        environment = {**os.environ, "LULL_RUNTIME_DIR": os.path.join(folder, "run"),
                       "XDG_DATA_HOME": os.path.join(folder, "data")}
        done = subprocess.run(
            [os.path.join(folder, "bin", "lull"), "run", "--", "true"], check=True, text=True,
            stderr=subprocess.PIPE, env=environment)
        self.assertIn("lull: Job", done.stderr)
        # The module asks the command of its own wheel, whatever PATH has.
        code = "import lull; print(lull._find_binary(), lull.load().job['command'])"
        ask = [os.path.join(folder, "bin", "python"), "-c", code]
        done = subprocess.run(ask, check=True, text=True, stdout=subprocess.PIPE, cwd="/",
                              env={**environment, "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stdout, f"{os.path.realpath(folder)}/bin/lull true\n")
        subprocess.run([pip, "uninstall", "-q", "-y", "lull"], check=True)
        self.assertEqual(glob.glob(os.path.join(folder, "[bl]i[nb]*", "lull*")), [])
        self.assertNotEqual(subprocess.run(ask, stderr=subprocess.DEVNULL, cwd="/",
                                           check=False).returncode, 0)


del In
if __name__ == "__main__":
    if os.getuid() != 0:
        print("images_test: skipped: chroot and mount need root", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)

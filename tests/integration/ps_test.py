#!/usr/bin/env python3
"""`lull ps` on real processes of every kind that one machine can make: what it says, its
exit code, and that the target does not notice.

Each target waits for a line, then says "done" and exits with 7. Situations that this
machine cannot make (no root, no musl-gcc, a kernel without yama) are skipped by name.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import guest

LULL = os.path.abspath(os.environ.get("LULL_BIN", "lull"))
SIM = os.environ.get("LULL_SIM", "")
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guests", "refusals")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PTRACE_SEIZE = 0x4206
needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root")


class PsCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(os.umask, os.umask(0o022))  # nobody runs what is made here
        cls.folder = tempfile.mkdtemp(prefix="lull-ps-")
        os.chmod(cls.folder, 0o755)  # for nobody
        cls.lull = cls.install()
        cls.sleeper = cls.compile("sleeper")
        cls.host = guest.Host()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()
        guest.stop_collector(cls.folder)
        shutil.rmtree(cls.folder)

    @classmethod
    def install(cls):
        """A copy of lull that every user can run: the build may lie in a private place."""
        build = os.path.dirname(os.path.dirname(LULL))
        for source, folder in ((LULL, "bin"), ("daemon/collector/lulld", "bin"),
                               ("preload/liblull.so", "lib/lull")):
            os.makedirs(os.path.join(cls.folder, folder), exist_ok=True)
            os.chmod(shutil.copy(os.path.join(build, source), os.path.join(cls.folder, folder)),
                     0o755)
        for state in ("root", "nobody"):
            os.makedirs(os.path.join(cls.folder, state), mode=0o700)
        if os.geteuid() == 0:
            os.chown(os.path.join(cls.folder, "nobody"), 65534, 65534)
        return os.path.join(cls.folder, "bin", "lull")

    @classmethod
    def compile(cls, name, *options, compiler="gcc", source=None):
        program = os.path.join(cls.folder, name)
        subprocess.run([compiler, "-Wall", "-Werror", *options, "-o", program,
                        os.path.join(SOURCES, (source or name) + ".c")], check=True)
        return program

    def setUp(self):
        self.running = []

    def tearDown(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self, *command, **options):
        """Starts a target and waits until it is ready."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.running.append(process)
        line = process.stdout.readline()
        self.assertEqual(line, "ready\n", "" if line else process.stderr.read())
        return process

    def run_lull(self, *arguments, prefix=()):
        state = os.path.join(self.folder, "nobody" if list(prefix) == NOBODY else "root")
        return subprocess.run([*prefix, self.lull, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60,
                              env=guest.lull_environment(state))

    def inner(self, process):
        """The one child of a process that only set the stage (unshare --fork)."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children",
                  encoding="utf-8") as file:
            (pid,) = file.read().split()
        return int(pid)

    def explain(self, pid, prefix=()):
        done = self.run_lull("ps", str(pid), "--json", prefix=prefix)
        self.assertEqual(done.stderr, "")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if answer["process"]["can_attach"] else 1)
        return answer

    def check_untouched(self, process, pid, look):
        """The target sleeps in a system call: it must not even have been woken."""
        def traces():  # not SigQ, which counts the signals of all processes of the user
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                return [line for line in file if line.startswith(
                    ("State", "TracerPid", "SigP", "SigB", "SigI", "SigC", "Shd", "voluntary",
                     "nonvoluntary"))]
        self.wait_for_sleep(pid)
        before = traces()
        look()
        self.assertEqual(traces(), before)

    def wait_for_sleep(self, pid):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] in "STtZ":
                    return
            time.sleep(0.01)
        self.fail(f"{pid} does not come to rest")

    def finish(self, process):
        out, err = process.communicate("x\n", timeout=20)
        self.assertEqual((out, err, process.returncode), ("done\n", "", 7))

    def refused(self, process, ids, words, pid=None, prefix=()):
        """Refused for these reasons, in so many words, and nothing happened to it."""
        pid = pid or process.pid

        def look():
            answer = self.explain(pid, prefix)
            self.assertEqual([one["id"] for one in answer["process"]["obstacles"]], ids)
            text = self.run_lull("ps", str(pid), prefix=prefix)
            self.assertEqual((text.returncode, text.stderr), (1, ""))
            self.assertIn("It cannot be attached to:", text.stdout)
            attach = self.run_lull("attach", str(pid), "--for", "1s", prefix=prefix)
            self.assertEqual((attach.returncode, attach.stdout), (125, ""))
            for word in words:
                self.assertIn(word, " ".join(text.stdout.split()))
                self.assertIn(word, " ".join(attach.stderr.split()))
        self.check_untouched(process, pid, look)
        self.finish(process)

    def accepted(self, process, notes=(), pid=None, prefix=()):
        pid = pid or process.pid

        def look():
            answer = self.explain(pid, prefix)
            self.assertEqual(answer["process"]["obstacles"], [])
            found = [one["id"] for one in answer["process"]["notes"]]
            self.assertLessEqual(set(notes), set(found))
            text = self.run_lull("ps", str(pid), prefix=prefix)
            self.assertEqual((text.returncode, text.stderr), (0, ""))
            self.assertIn(f"It can be attached to: lull attach {pid}", text.stdout)
        self.check_untouched(process, pid, look)
        attach = self.run_lull("attach", str(pid), "--for", "200ms", "--quiet", prefix=prefix)
        self.assertEqual((attach.returncode, attach.stdout), (0, ""), attach.stderr)
        self.finish(process)


class States(PsCase):
    def test_an_ordinary_process_can_be_attached_to(self):
        self.accepted(self.start(self.sleeper))

    def test_a_process_that_is_not_there(self):
        process = self.start(self.sleeper)
        self.finish(process)
        done = self.run_lull("ps", str(process.pid))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"There is no process {process.pid}", done.stderr)
        self.assertEqual(self.explain(process.pid)["process"]["obstacles"][0]["id"],
                         "not_found")

    def test_a_process_that_has_ended(self):
        pid = os.fork()
        if pid == 0:
            os._exit(3)
        self.wait_for_sleep(pid)
        obstacles = self.explain(pid)["process"]["obstacles"]
        self.assertEqual([one["id"] for one in obstacles], ["dying"])
        self.assertEqual(os.waitpid(pid, 0)[1], 3 << 8)

    def test_a_stopped_process(self):
        process = self.start(self.sleeper)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        answer = self.explain(process.pid)["process"]
        self.assertEqual([one["id"] for one in answer["obstacles"]], ["stopped"])
        self.assertEqual(answer["state"], "T")
        self.assertEqual(self.explain(process.pid)["process"]["state"], "T")
        self.assertIn(f"kill -CONT {process.pid}",
                      self.run_lull("ps", str(process.pid)).stdout)
        os.kill(process.pid, signal.SIGCONT)
        self.finish(process)

    def test_a_process_that_another_traces(self):
        process = self.start(self.sleeper)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int] + [ctypes.c_void_p] * 2
        self.assertEqual(libc.ptrace(PTRACE_SEIZE, process.pid, None, None), 0)
        self.refused(process, ["traced"], [f"(PID {os.getpid()})", "one tracer only"])

    def test_a_process_under_lull_run(self):
        done = subprocess.Popen([LULL, "run", "--quiet", "--", self.sleeper],
                                env=self.host.environment, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(done)
        self.assertEqual(done.stdout.readline(), "ready\n")
        with open(f"/proc/{done.pid}/task/{done.pid}/children", encoding="utf-8") as file:
            below = [int(pid) for pid in file.read().split()]
        (pid,) = [pid for pid in below
                  if os.readlink(f"/proc/{pid}/exe") == self.sleeper]
        self.refused(done, ["already_recorded"], ["started under `lull run`", "lull arm"],
                     pid)


class Permissions(PsCase):
    @needs_root
    def test_of_another_users_process(self):
        self.refused(self.start(self.sleeper), ["other_user"],
                     ["belongs to root", "sudo -u root"], prefix=NOBODY)

    @needs_root
    def test_of_ones_own_process_without_any_privilege(self):
        self.accepted(self.start(*NOBODY, self.sleeper), prefix=NOBODY)

    @needs_root
    def test_of_root_over_anybody(self):
        self.accepted(self.start(*NOBODY, self.sleeper))

    @needs_root
    def test_of_a_process_with_another_group(self):
        target = self.start("setpriv", "--reuid=65534", "--regid=7", "--clear-groups",
                            self.sleeper)
        self.refused(target, ["other_group"], ["group 7"], prefix=NOBODY)

    @needs_root
    def test_of_a_shielded_process(self):
        self.refused(self.start(*NOBODY, self.sleeper, "undumpable"), ["not_dumpable"],
                     ["PR_SET_DUMPABLE", "Run lull as root"], prefix=NOBODY)
        self.accepted(self.start(*NOBODY, self.sleeper, "undumpable"))

    @needs_root
    def test_of_a_process_with_more_capabilities(self):
        target = self.start(*NOBODY, "--inh-caps=+net_raw", "--ambient-caps=+net_raw",
                            self.sleeper)
        self.refused(target, ["capabilities"], ["capabilities that lull has not"],
                     prefix=NOBODY)

    def test_under_a_seccomp_filter_that_forbids_ptrace(self):
        # LeakSanitizer, where lull is built with it, needs ptrace itself.
        no_leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        prefix = ["env", "ASAN_OPTIONS=" + no_leaks, self.compile("deny_ptrace")]
        self.refused(self.start(self.sleeper), ["ptrace_denied"],
                     ["Operation not permitted", "--cap-add SYS_PTRACE", "--dormant"],
                     prefix=prefix)

    def test_under_yama(self):
        if not os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
            self.skipTest("this kernel has no yama; verdict_test.cc has its rules")
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="utf-8") as file:
            scope = int(file.read())
        target = self.start(*NOBODY, self.sleeper) if os.geteuid() == 0 else \
            self.start(self.sleeper)
        prefix = NOBODY if os.geteuid() == 0 else []
        if scope == 0:
            self.accepted(target, prefix=prefix)
        else:
            self.refused(target, ["yama"], ["ptrace_scope"], prefix=prefix)


class Programs(PsCase):
    def test_that_are_linked_statically(self):
        program = self.compile("static", "-static", source="sleeper")
        self.refused(self.start(program), ["static_binary"], ["linked statically"])

    @unittest.skipUnless(shutil.which("musl-gcc"), "needs musl-gcc (package musl-tools)")
    def test_that_use_musl(self):
        program = self.compile("musl", "-idirafter", "/usr/include", "-idirafter",
                               "/usr/include/x86_64-linux-gnu", compiler="musl-gcc",
                               source="sleeper")
        self.refused(self.start(program), ["musl"], ["musl C library"])

    @unittest.skipUnless(os.uname().machine == "x86_64", "needs x86-64")
    def test_of_32_bits(self):
        program = self.compile("bare32", "-m32", "-nostdlib", "-static")
        try:
            target = self.start(program)
        except OSError:
            self.skipTest("this kernel runs no 32-bit programs")
        self.refused(target, ["other_bitness"], ["32-bit program"])

    def test_in_strict_seccomp(self):
        self.refused(self.start(self.sleeper, "strict"), ["strict_seccomp"],
                     ["strict mode"])


@needs_root
class Namespaces(PsCase):
    def test_of_pids(self):
        target = self.start("unshare", "--pid", "--fork", "--kill-child", self.sleeper)
        self.accepted(target, ["other_pid_namespace"], pid=self.inner(target))

    def test_of_mounts(self):
        target = self.start("unshare", "--mount", "sh", "-c",
                            f"mount -t tmpfs none /run && exec {self.sleeper}")
        self.accepted(target, ["other_mount_namespace"])

    def test_of_mounts_without_a_place_for_the_shim(self):
        mounts = " && ".join(f"mount -t tmpfs -o noexec none {place}" for place in
                             ("/run", "/var/tmp", "/dev/shm"))
        # Started before /tmp, where it lies, is covered; read-only there.
        script = f"exec 9<{self.sleeper} && {mounts} && mount -t tmpfs -o ro none /tmp && " \
                 "exec /proc/self/fd/9"
        self.refused(self.start("unshare", "--mount", "sh", "-c", script), ["no_foothold"],
                     ["/run mounted noexec", "/tmp mounted read-only", "--tmpfs"])

    def test_of_users(self):
        target = self.start("unshare", "--user", "--map-root-user", self.sleeper)
        self.accepted(target, ["other_user_namespace"])


RANK = """
import ctypes, multiprocessing, os, sys
if sys.argv[1] == "gpu":
    ctypes.CDLL("libcudart.so.12").cudaFree(None)
reading, writing = os.pipe()
if os.fork() == 0:           # as DataLoader's workers
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
context = multiprocessing.get_context("spawn")
lock = context.Lock()        # starts the resource tracker
sys.stdout.write("r")
sys.stdout.flush()
sys.stdin.read(1)
"""


class Trees(PsCase):
    def start_job(self, kind):
        script = os.path.join(self.folder, "train.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(RANK)
        shell = "for r in 0 1; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 " \
                f"{sys.executable} {script} {kind} <&3 & done 3<&0; wait"
        process = subprocess.Popen(["sh", "-c", f"exec 3<&0; {shell}"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=dict(os.environ, LD_LIBRARY_PATH=SIM))
        self.addCleanup(process.communicate)  # closes the input: all end
        self.assertEqual(process.stdout.read(2), b"rr")
        return process

    def check(self, kind):
        process = self.start_job(kind)
        answer = self.explain(process.pid)
        workers = answer["workers"]
        self.assertEqual(len(workers), 2)
        listed = {one["pid"]: one for one in
                  json.loads(self.run_lull("ps", "--json").stdout)["processes"]}
        ranks = []
        for pid in workers:
            self.assertTrue(listed[pid]["can_attach"])
            self.assertEqual(listed[pid]["role"], "ordinary")
            self.assertEqual(listed[pid]["python_version"],
                             "%d.%d" % sys.version_info[:2])
            self.assertEqual(listed[pid]["cuda_called"], kind == "gpu")
            ranks.append((listed[pid]["rank"], listed[pid]["world_size"]))
        self.assertEqual(sorted(ranks), [(0, 2), (1, 2)])
        everything = json.loads(self.run_lull("ps", "--all", "--json").stdout)["processes"]
        below = [one for one in everything if one["parent_pid"] in workers]
        self.assertEqual(sorted(one["role"] for one in below),
                         ["fork_child"] * 2 + ["helper"] * 2)
        self.assertFalse({one["pid"] for one in below} & set(listed))

    def test_of_cpu_ranks(self):
        self.check("cpu")

    @unittest.skipUnless(SIM, "needs the simulated device (LULL_SIM)")
    def test_of_gpu_ranks(self):
        self.check("gpu")

    def test_whose_processes_come_and_go(self):
        storm = subprocess.Popen(["sh", "-c", "while :; do true | /bin/true | sh -c :; done"])
        try:
            for _ in range(20):
                done = self.run_lull("ps", "--all", "--json")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                json.loads(done.stdout)
        finally:
            storm.kill()
            storm.wait()


if __name__ == "__main__":
    unittest.main()

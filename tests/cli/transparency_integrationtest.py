"""A job under `lull run` is the job that it would have been without."""

import ctypes
import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

import lull_case
from lull_case import ARGUMENTS, LullCase

PYTHON = sys.executable
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


class Inheritance(LullCase):
    def both(self, command, **options):
        """Output and status of `command` without and with lull in front of it."""
        plain = subprocess.run(command, env=self.environment, capture_output=True,
                               timeout=60, **options)
        under = subprocess.run([ARGUMENTS.lull, "run", "--quiet", "--", *command],
                               env=self.environment, capture_output=True, timeout=60,
                               **options)
        return plain, under

    def assert_same(self, command, **options):
        plain, under = self.both(command, **options)
        self.assertEqual(plain.stdout.decode(), under.stdout.decode())
        self.assertEqual(plain.stderr.decode(), under.stderr.decode())
        self.assertEqual(plain.returncode, under.returncode)
        self.assertGreater(len(plain.stdout), 1000)

    def setUp(self):
        super().setUp()
        self.start_collector()

    def test_mask_limits_descriptors_environment_and_the_rest_are_inherited(self):
        self.assert_same([ARGUMENTS.puppet, "one", "two words", ""], stdin=subprocess.DEVNULL)

    def test_unusual_settings_are_inherited_too(self):
        def unusual():
            os.umask(0o137)
            os.nice(3)
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGUSR2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD,
                           signal.SIGUSR1, signal.SIGTTOU):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM,
                                                      signal.SIGRTMIN + 3})
        self.assert_same([ARGUMENTS.puppet], preexec_fn=unusual, cwd="/usr",
                         restore_signals=False, stdin=subprocess.DEVNULL)

    def test_extra_descriptors_are_inherited(self):
        with open("/etc/passwd", encoding="utf-8") as file:
            self.assert_same([ARGUMENTS.puppet], pass_fds=(file.fileno(),),
                             stdin=subprocess.DEVNULL)

    def test_closed_standard_descriptors_stay_closed(self):
        path = os.path.join(self.folder, "state")
        script = f'exec "$@" > {path} 2>&- <&-'
        states = []
        for prefix in ([], [ARGUMENTS.lull, "run", "--quiet", "--"]):
            subprocess.run(["sh", "-c", script, "sh", *prefix, ARGUMENTS.puppet],
                           env=self.environment, check=True, timeout=60)
            with open(path, encoding="utf-8") as file:
                states.append(file.read())
        self.assertEqual(states[0], states[1])
        self.assertNotIn("fd 0", states[0])


class Streams(LullCase):
    def setUp(self):
        super().setUp()
        self.start_collector()

    def test_stdin_reaches_the_job(self):
        done = self.lull("run", "--quiet", "--", "cat", input="a\nb\n")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("a\nb\n", "", 0))

    def test_a_large_output_arrives_whole(self):
        code = "import sys; sys.stdout.buffer.write(b'0123456789abcdef' * (1 << 22))"
        done = self.lull("run", "--quiet", "--", PYTHON, "-c", code, text=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(hashlib.sha256(done.stdout).hexdigest(),
                         hashlib.sha256(b"0123456789abcdef" * (1 << 22)).hexdigest())

    def test_the_summary_goes_to_stderr_alone(self):
        done = self.lull("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual(done.stdout, "out\n")
        self.assertTrue(done.stderr.startswith("err\nlull: "), done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        self.assertEqual(done.returncode, 3)

    def test_quiet_leaves_the_summary_out(self):
        done = self.lull("run", "--quiet", "--", "true")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))

    def test_a_closed_stdout_ends_the_job_by_sigpipe_as_ever(self):
        pipe = subprocess.run(
            ["bash", "-c", f"{ARGUMENTS.lull} run --quiet -- yes | head -1; "
                           "echo ${PIPESTATUS[0]}"],
            env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(pipe.stdout, "y\n141\n")


class ExitStatus(LullCase):
    def setUp(self):
        super().setUp()
        self.start_collector()

    def test_is_the_one_of_the_job(self):
        for status in (0, 1, 2, 42, 125, 126, 127, 255):
            with self.subTest(status=status):
                done = self.lull("run", "--quiet", "--", "sh", "-c", f"exit {status}")
                self.assertEqual((done.returncode, done.stderr), (status, ""))

    def test_is_128_and_the_signal_that_ended_the_job(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP,
                       signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1, signal.SIGRTMIN):
            with self.subTest(signal=number):
                code = f"import os, signal; signal.signal({int(number)}, signal.SIG_DFL) " \
                       f"if {int(number)} != 9 else None; os.kill(os.getpid(), {int(number)})"
                done = self.lull("run", "--quiet", "--", PYTHON, "-c", code)
                self.assertEqual((done.returncode, done.stderr), (128 + number, ""))

    def test_is_127_for_a_command_that_does_not_exist(self):
        done = self.lull("run", "--", "no-such-command-here")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(done.stderr, "lull run: no-such-command-here: command not found\n")

    def test_is_126_for_a_command_that_cannot_be_executed(self):
        done = self.lull("run", "--", "/etc/passwd")
        self.assertEqual(done.returncode, 126)
        self.assertEqual(done.stderr, "lull run: /etc/passwd: Permission denied\n")

    def test_a_script_without_interpreter_line_runs_as_in_a_shell(self):
        script = os.path.join(self.folder, "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write("exit 7\n")
        os.chmod(script, 0o755)
        self.assertEqual(self.lull("run", "--quiet", "--", script).returncode, 7)

    def test_stays_where_the_summary_finds_no_room_in_a_file_of_limited_size(self):
        with open(os.path.join(self.folder, "errors"), "wb") as errors:
            done = subprocess.run(
                [ARGUMENTS.lull, "run", "--", "sh", "-c", "head -c 1000 /dev/zero >&2; exit 5"],
                env=self.environment, stderr=errors, timeout=60, check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assertEqual(done.returncode, 5)

    @unittest.skipIf(os.getuid() != 0, "RLIMIT_NPROC of another user: needs root")
    def test_a_job_that_may_not_fork_runs_all_the_same(self):
        nobody = 65534
        folder, lull, preload = lull_case.belongings(self, nobody)
        done = self.lull(
            "run", "--", "sh", "-c", "echo out; exit 7", program=lull, cwd="/",
            env=dict(self.environment, LULL_RUNTIME_DIR=folder, XDG_DATA_HOME=folder,
                     LULL_PRELOAD_LIBRARY=preload),
            user=nobody, group=nobody, extra_groups=[],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        self.assertEqual((done.stdout, done.returncode), ("out\n", 7), done.stderr)
        self.assertIn("the job runs without being recorded", done.stderr)


# Counts each signal of its own; ends when its stdin does.
COUNTER = """
import signal, sys
counts = {}
def note(number, frame):
    counts[number] = counts.get(number, 0) + 1
for number in (%s):
    signal.signal(number, note)
print("ready", flush=True)
while True:
    try:
        sys.stdin.readline()
        break
    except InterruptedError:
        pass
print(sorted((int(number), count) for number, count in counts.items()), flush=True)
"""
COUNTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
           signal.SIGUSR2, signal.SIGWINCH, signal.SIGALRM, signal.SIGRTMIN + 2,
           # Limits and timers, which batch systems send as a warning.
           signal.SIGXCPU, signal.SIGXFSZ, signal.SIGPROF, signal.SIGVTALRM, signal.SIGPIPE)


class Signals(LullCase):
    def setUp(self):
        super().setUp()
        self.start_collector()

    def start_counter(self):
        code = COUNTER % ", ".join(str(int(number)) for number in COUNTED)
        process = self.start_lull("run", "--quiet", "--", PYTHON, "-c", code,
                                  stdin=subprocess.PIPE, start_new_session=True)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def counts(self, process):
        process.stdin.close()
        line = process.stdout.readline().decode()
        self.assertEqual(process.wait(30), 0)
        return line.strip()

    def test_to_lull_alone_reach_the_job_exactly_once(self):
        process = self.start_counter()
        for number in COUNTED:
            os.kill(process.pid, number)
            time.sleep(0.1)
        time.sleep(0.3)
        self.assertEqual(self.counts(process), str(sorted((int(n), 1) for n in COUNTED)))

    def test_to_the_group_reach_the_job_exactly_once(self):
        process = self.start_counter()
        for number in COUNTED:
            os.killpg(process.pid, number)
            time.sleep(0.1)
        time.sleep(0.3)
        self.assertEqual(self.counts(process), str(sorted((int(n), 1) for n in COUNTED)))

    def test_to_the_group_then_to_lull_are_two(self):
        process = self.start_counter()
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGTERM)
        time.sleep(0.3)
        self.assertEqual(self.counts(process), str([(int(signal.SIGTERM), 2)]))

    def test_a_signal_that_ends_the_job_ends_lull_with_its_status(self):
        process = self.start_lull("run", "--quiet", "--", "sleep", "60")
        self.wait_until(lambda: child_named(process.pid, "sleep"), "sleep runs")
        process.terminate()
        self.assertEqual(process.wait(30), 128 + signal.SIGTERM)

    def test_from_the_job_to_its_parent_go_to_who_started_lull(self):
        received = []
        old = signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
        self.addCleanup(signal.signal, signal.SIGUSR1, old)
        code = ("import os, signal, time; signal.signal(signal.SIGUSR1, signal.SIG_DFL); "
                "os.kill(os.getppid(), signal.SIGUSR1); time.sleep(0.5)")
        done = self.lull("run", "--quiet", "--", PYTHON, "-c", code)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(received, [signal.SIGUSR1])

    def test_a_job_stopped_alone_can_be_continued_alone(self):
        process = self.start_lull("run", "--quiet", "--", "sh", "-c", "sleep 1; exit 9",
                                  start_new_session=True)
        self.wait_until(lambda: child_named(process.pid, "sh"), "the job runs")
        job = child_named(process.pid, "sh")
        os.kill(job, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(job, signal.SIGCONT)
        self.assertEqual(process.wait(30), 9)

    def test_the_value_of_a_signal_is_a_whole_pointer(self):
        code = ("import ctypes, signal, struct\n"
                "libc = ctypes.CDLL(None)\n"
                "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
                "print('ready', flush=True)\n"
                "info, mask = ctypes.create_string_buffer(128), ctypes.create_string_buffer(128)\n"
                "libc.sigaddset(mask, int(signal.SIGUSR1))\n"
                "libc.sigwaitinfo(mask, info)\n"
                "print(hex(struct.unpack_from('Q', info.raw, 24)[0]))\n")
        process = self.start_lull("run", "--quiet", "--", PYTHON, "-c", code)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertEqual(LIBC.sigqueue(process.pid, int(signal.SIGUSR1),
                                       ctypes.c_void_p(0x1122334455667788)), 0)
        self.assertEqual(process.stdout.readline(), b"0x1122334455667788\n")
        self.assertEqual(process.wait(30), 0)

    def test_who_asked_for_its_death_with_the_parent_gets_it(self):
        read, write = os.pipe()
        launcher = os.fork()
        if launcher == 0:
            # A launcher that wants to leave nothing behind, however it ends.
            subprocess.Popen([ARGUMENTS.lull, "run", "--quiet", "--", "sh", "-c",
                              f"echo started >&{write}; exec sleep 60"],
                             env=self.environment, pass_fds=[write],
                             preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
            signal.pause()
        os.close(write)
        self.addCleanup(os.close, read)
        self.assertEqual(os.read(read, 100), b"started\n")
        os.kill(launcher, signal.SIGKILL)
        os.waitpid(launcher, 0)
        os.set_blocking(read, False)

        def job_is_gone():
            try:
                return os.read(read, 1) == b""
            except BlockingIOError:
                return False
        self.wait_until(job_is_gone, "the job ends with who started lull")

    def test_the_job_outlives_a_killed_lull(self):
        marker = os.path.join(self.folder, "done")
        process = self.start_lull("run", "--quiet", "--", "sh", "-c",
                                  f"sleep 1; echo yes > {marker}")
        self.wait_until(lambda: child_named(process.pid, "sh"), "the job runs")
        process.kill()
        process.wait()
        self.wait_until(lambda: os.path.exists(marker), "the job ends")


# Processes that lose their parent and end; then the number of entries that they left.
ORPHANS = """
(sleep 0.2 & sleep 0.1 & setsid sleep 0.3 & true)
sleep 0.5
for i in 1 2 3 4 5 6 7 8 9 10; do
  left=$(grep -l '^State:.Z' /proc/[0-9]*/status 2> /dev/null | wc -l)
  [ $left = 0 ] && break
  sleep 0.1
done
echo $left
"""


@unittest.skipUnless(lull_case.containers_work(), "no PID namespace to be had here")
class FirstProcess(LullCase):
    """lull as a container's entry point."""

    def setUp(self):
        super().setUp()
        self.start_collector()

    def start_in_container(self, *command, **options):
        process = subprocess.Popen(
            [*lull_case.IN_CONTAINER, ARGUMENTS.lull, "run", "--quiet", "--", *command],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.processes.append(process)
        return process

    def ended(self, process):
        output, errors = process.communicate(timeout=60)
        return output.decode(), errors.decode(), process.returncode

    def test_orphans_leave_nothing_behind_and_the_status_is_the_jobs(self):
        job = self.start_in_container("sh", "-c", ORPHANS + "exit 7")
        self.assertEqual(self.ended(job), ("0\n", "", 7))
        # Also where the orphans' status was to be ignored.
        job = self.start_in_container(
            "sh", "-c", ORPHANS + "kill -9 $$",
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(self.ended(job), ("0\n", "", 137))

    def test_signals_to_the_first_process_reach_the_job_exactly_once(self):
        code = COUNTER % ", ".join(str(int(number)) for number in COUNTED)
        job = self.start_in_container(PYTHON, "-c", code, stdin=subprocess.PIPE)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="utf-8") as file:
            first = int(file.read())
        for number in COUNTED:
            os.kill(first, number)
            time.sleep(0.1)
        time.sleep(0.3)
        job.stdin.close()
        self.assertEqual(job.stdout.readline().decode().strip(),
                         str(sorted((int(n), 1) for n in COUNTED)))
        self.assertEqual(job.wait(30), 0)
        job.stderr.close()

    def test_the_job_inherits_what_the_first_process_was_started_with(self):
        def unusual():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
        masks = []
        for prefix in ([], [ARGUMENTS.lull, "run", "--quiet", "--"]):
            done = subprocess.run(
                [*lull_case.IN_CONTAINER, *prefix, "grep", "Sig[BI]", "/proc/self/status"],
                env=self.environment, capture_output=True, timeout=60, check=True,
                preexec_fn=unusual, restore_signals=False)
            masks.append(done.stdout)
        self.assertEqual(*masks)


def child_named(parent, name):
    """The pid of a child of `parent` with this command name, or None."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                before, after = file.read().rsplit(")", 1)
        except OSError:
            continue
        if before.split("(", 1)[1] == name and int(after.split()[1]) == parent:
            return int(pid)
    return None


if __name__ == "__main__":
    lull_case.main()

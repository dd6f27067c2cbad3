#!/usr/bin/env python3
"""A guest that nobody notices: native programs, shells, compilers, and the good and
bad habits of programs around fork, exec, threads, signals and exceptions."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest

import guest

MULTIARCH = "/usr/lib/x86_64-linux-gnu"


def compiled(name):
    return os.path.join(guest.GUESTS, name)


class NativePrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def unnoticed(self, command, **options):
        return self.host.check_unnoticed(self, command, **options)

    def test_a_shell_pipeline_works(self):
        done = self.unnoticed(["bash", "-c", "seq 1 1000 | sort -rn | head -3; echo x >&2"])
        self.assertEqual(done.stdout, "1000\n999\n998\n")

    def test_an_exit_status_passes_through(self):
        self.unnoticed(["sh", "-c", "exit 7"], status=7)

    def test_a_death_by_signal_becomes_128_and_its_number(self):
        for number in (6, 9, 15):
            with self.subTest(signal=number):
                self.unnoticed(["sh", "-c", f"kill -{number} $$"], status=128 + number)

    def test_standard_input_reaches_the_command(self):
        done = self.unnoticed(["cat"], input=b"line\n" * 10000)
        self.assertEqual(len(done.stdout), 50000)

    def test_arguments_arrive_as_they_are(self):
        self.unnoticed(["printf", "%s|", "", " ", "--json", "--", "a b", "*", "$HOME", "\n"])

    def test_inherited_descriptors_stay_as_they_are(self):
        self.unnoticed(["sh", "-c", "ls /proc/self/fd | wc -l"])

    def test_the_signal_mask_and_dispositions_are_those_of_the_caller(self):
        self.unnoticed(["grep", "-E", "^Sig(Blk|Ign|Cgt)|^Threads", "/proc/self/status"])

    def test_gcc_makes_the_same_object(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "a.c")
            with open(source, "w") as file:
                file.write("int main(int c, char** v) { return v[c] == 0 ? 0 : undefined; }\n"
                           "int f(int x) { return x * 3; }\n")
            self.unnoticed(["gcc", "-c", source, "-o", os.path.join(folder, "bad.o")], status=1)
            digests = []
            for run in (self.host.alone, self.host.with_lull):
                target = os.path.join(folder, "good.o")
                self.assertEqual(run(["gcc", "-O2", "-Dundefined=1", "-c", source,
                                      "-o", target]).status, 0)
                with open(target, "rb") as file:
                    digests.append(hashlib.sha256(file.read()).digest())
            self.assertEqual(digests[0], digests[1])

    def test_programs_with_a_sanitizer_work(self):
        """Their runtime calls dlsym before it is ready for anything else; and has its own
        memcpy and mutex in libc's place, which must not look at what lull does."""
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guests", "thread_storm.c")
        for compiler, *flags in (["gcc", "-fsanitize=thread"],
                                 ["gcc", "-fsanitize=thread", "-static-libtsan"],
                                 ["clang", "-fsanitize=thread"],
                                 ["gcc", "-fsanitize=address", "-static-libasan"]):
            with self.subTest(compiler=compiler, flags=flags), \
                    tempfile.TemporaryDirectory() as folder:
                program = os.path.join(folder, "program")
                # TSan wants its shadow memory where randomised addresses may lie. The
                # options are those of lull's own build.
                command = ["env", "-u", "ASAN_OPTIONS", "-u", "TSAN_OPTIONS", "-u",
                           "UBSAN_OPTIONS", "setarch", "-R", program]
                if (shutil.which(compiler) is None
                        or subprocess.run([compiler, *flags, source, "-o", program, "-pthread",
                                           "-L", guest.GUESTS, "-lcudart",
                                           f"-Wl,-rpath,{guest.GUESTS}"]).returncode != 0
                        or self.host.alone(command).status != 0):
                    self.skipTest("the sanitizer does not work here")
                self.unnoticed(command, status=0)

    @unittest.skipUnless(shutil.which("musl-gcc"), "needs musl-gcc (package musl-tools)")
    def test_a_program_of_another_libc_works(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guests", "other_libc.c")
        with tempfile.TemporaryDirectory() as folder:
            program, library = (os.path.join(folder, name) for name in ("program", "library.so"))
            subprocess.run(["musl-gcc", "-O1", source, "-o", program], check=True)
            subprocess.run(["musl-gcc", "-O1", "-shared", "-fPIC", "-DLIBRARY", source, "-o",
                            library], check=True)
            done = self.unnoticed([program, library], status=9)
            self.assertEqual(done.stdout,
                             "child 5\nlibrary 42\nnext found\nnone missing\n")

    def test_forks_from_many_threads_work(self):
        self.unnoticed([compiled("fork_from_threads")], status=0)

    def test_a_storm_of_vfork_and_posix_spawn_works(self):
        self.unnoticed([compiled("spawn_storm")], status=0)

    def test_children_of_a_bare_clone_work(self):
        self.unnoticed([compiled("raw_clone")], status=0)

    def test_more_threads_than_rings_work(self):
        self.unnoticed([compiled("thread_storm")], status=0)

    def test_exceptions_cancellation_and_long_jumps_pass_through_hooks(self):
        self.unnoticed([compiled("leaves_hooked_calls")], status=0)

    def test_libraries_can_be_loaded_late_and_unloaded(self):
        library = os.path.join(guest.GUESTS, "libcudart.so.12")
        self.unnoticed([compiled("unloads"), library], status=0)

    def test_other_allocators_can_be_preloaded_beside_it(self):
        for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
            library = os.path.join(MULTIARCH, name)
            with self.subTest(library=name):
                self.assertTrue(os.path.exists(library), "tools/install_dependencies --test")
                for program in ("fork_from_threads", "leaves_hooked_calls", "thread_storm"):
                    self.unnoticed([compiled(program)], env={"LD_PRELOAD": library}, status=0)

    def test_the_preloaded_allocator_is_still_in_use(self):
        library = os.path.join(MULTIARCH, "libjemalloc.so.2")
        done = self.unnoticed(["sh", "-c", "grep -c jemalloc /proc/self/maps | grep -v '^0'"],
                              env={"LD_PRELOAD": library}, status=0)
        self.assertTrue(done.stdout.strip())

    def test_nothing_is_left_running_after_the_command(self):
        done = self.host.with_lull(["sh", "-c", "echo $LULL_SOCKET"])
        socket = done.stdout.strip()
        self.assertTrue(socket)
        self.assertFalse(os.path.exists(socket), "the relay's socket outlived the job")

    def test_a_background_process_of_the_command_is_not_waited_for(self):
        # Its standard output is closed, as a daemon's is: else `with_lull` itself
        # would wait for the end of the pipe.
        self.unnoticed(["sh", "-c", "sleep 30 > /dev/null 2>&1 & echo started"],
                       timeout=20)


if __name__ == "__main__":
    unittest.main()

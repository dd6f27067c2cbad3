"""Completions and manual pages: the shells and man take them, and they say what --help
says."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

import lull_case
from lull_case import ARGUMENTS, LullCase


# Tab writes what is offered into $FOUND; Ctrl-G, when that is done, clears the line.
ZSH_SETUP = r"""
PS1= PS2= RPS1=
unsetopt autolist automenu beep
autoload -Uz compinit
compinit -u -D
compadd() {
  [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] || {
    local -a hits
    builtin compadd -A hits "$@"
    print -rl -- $hits >> $FOUND
  }
  builtin compadd "$@"
}
finish() { zle kill-whole-line; print -r -- done; }
zle -N finish
bindkey '^I' complete-word '^G' finish
"""


class Zsh:
    """An interactive one on a pseudo terminal, with `setup` done."""

    def __init__(self, folder, setup):
        self.found, script = (os.path.join(folder, name) for name in ("found", "setup.zsh"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(setup)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(FOUND=self.found, TERM="dumb", ZDOTDIR=folder)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.type(f"source {script}; print read''y\n", b"ready")

    def type(self, text, expected):
        os.write(self.terminal, text.encode())
        shown, end = b"", time.monotonic() + 60
        while expected not in shown:
            assert time.monotonic() < end, shown
            if select.select([self.terminal], [], [], 0.1)[0]:
                shown += os.read(self.terminal, 4096)

    def completed(self, line):
        with open(self.found, "w", encoding="utf-8"):
            pass
        self.type(line + "\t\x07", b"done")
        with open(self.found, encoding="utf-8") as file:
            return set(file.read().split())

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Manual(LullCase):
    def printed(self, *arguments):
        done = self.lull(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def verbs(self):
        return re.findall(r"^  (\w+) ", self.printed("--help").split("Subcommands:")[1]
                          .split("\n\n")[0], re.M)

    def options(self, verb):
        return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.printed(verb, "--help"), re.M))

    def completed(self, *words):
        """What bash offers for the last of `words`."""
        script = os.path.join(self.folder, "lull.bash")
        with open(script, "w", encoding="utf-8") as file:
            file.write(self.printed("completion", "bash"))
        test = ("set -u; source \"$1\"; shift; COMP_WORDS=(lull \"$@\"); COMP_CWORD=$#; _lull; "
                "printf '%s\\n' \"${COMPREPLY[@]-}\"")
        done = subprocess.run(["bash", "-c", test, "bash", script, *words], text=True,
                              capture_output=True, check=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash_completes_verbs_options_and_values(self):
        verbs = self.verbs()
        self.assertIn("report", verbs)
        self.assertEqual(self.completed(""), {*verbs, "--help", "--version"})
        self.assertEqual(self.completed("sy"), {"syncs"})
        for verb in verbs:
            self.assertEqual(self.completed(verb, "--"), self.options(verb), verb)
        self.assertEqual(self.completed("syncs", "--by", ""), {"line", "function", "stack"})
        self.assertEqual(self.completed("syncs", "--by", "=", "st"), {"stack"})
        self.assertEqual(self.completed("run", "--gpu", "w"), {"window"})
        self.assertEqual(self.completed("syncs", "--token-file", "--"), set())  # files

    def test_bash_leaves_the_words_of_the_job_alone(self):
        self.assertEqual(self.completed("run", "--name", "x", "--", "python", "--"), set())
        self.assertEqual(self.completed("report", "res"), set())

    def script(self, shell, name):
        """The folder with this shell's script."""
        folder = os.path.join(self.folder, shell)
        os.mkdir(folder)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(self.printed("completion", shell))
        # A file to be offered where one is wanted.
        with open(os.path.join(folder, "train.py"), "w", encoding="utf-8"):
            pass
        return folder

    def check_completions(self, of):
        """What zsh and fish have in common: `of` tells what is offered for a line."""
        verbs = self.verbs()
        self.assertEqual(of("lull "), set(verbs))
        self.assertEqual(of("lull sy"), {"syncs"})
        self.assertEqual(of("lull --"), {"--help", "--version"})
        for verb in verbs:
            self.assertEqual(of(f"lull {verb} --"), self.options(verb), verb)
        self.assertEqual(of("lull syncs --by "), {"line", "function", "stack"})
        self.assertEqual(of("lull run --gpu w"), {"window"})
        self.assertEqual(of("lull syncs --token-file tr"), {"train.py"})
        # The job's words are the job's.
        self.assertEqual(of("lull run --name x -- cat tr"), {"train.py"})
        self.assertNotIn("--gpu", of("lull run -- cat --g"))

    @unittest.skipUnless(shutil.which("zsh"), "SKIPPED: no zsh here, its script was not run")
    def test_zsh_completes_verbs_options_and_values(self):
        folder = self.script("zsh", "_lull")
        lull = os.path.join(folder, "_lull")
        for setup in (f"fpath=({folder} $fpath)\n" + ZSH_SETUP, ZSH_SETUP + f"source {lull}\n"):
            with self.subTest(setup=setup[:10]):
                zsh = Zsh(self.folder, f"cd {folder}\n" + setup)
                self.addCleanup(zsh.end)
                self.check_completions(zsh.completed)
                self.assertEqual(zsh.completed("lull syncs --by=s"), {"stack"})

    @unittest.skipUnless(shutil.which("fish"), "SKIPPED: no fish here, its script was not run")
    def test_fish_completes_verbs_options_and_values(self):
        folder = self.script("fish", "lull.fish")

        def completed(line):
            done = subprocess.run(
                ["fish", "--no-config", "-c", "source lull.fish; complete -C $argv[1]", line],
                cwd=folder, text=True, capture_output=True, check=True,
                env={**self.environment, "HOME": folder})
            self.assertEqual(done.stderr, "")
            return {offer.split("\t")[0] for offer in done.stdout.splitlines()}
        self.check_completions(completed)
        self.assertEqual(completed("lull syncs --by=s"), {"--by=stack"})

    def test_manual_pages_hold_the_texts_of_help(self):
        folder = os.path.join(self.folder, "man")
        os.mkdir(folder)
        self.printed("man", "--into", folder)
        self.assertEqual(set(os.listdir(folder)),
                         {"lull.1", *(f"lull-{verb}.1" for verb in self.verbs())})
        for name in sorted(os.listdir(folder)):
            with self.subTest(page=name), open(os.path.join(folder, name)) as file:
                page = file.read()
                verb = name[len("lull-"):-len(".1")]
                self.assertEqual(page, self.printed("man", *([verb] if verb else [])))
                for option in self.options(verb) if verb else ():
                    self.assertIn(option.replace("-", "\\-"), page)
                if shutil.which("man") and shutil.which("groff"):
                    done = subprocess.run(["man", "--warnings", "-l", file.name], text=True,
                                          capture_output=True,
                                          env={**self.environment, "MANWIDTH": "400"})
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn("NAME", done.stdout)
                else:
                    print("no man here: the pages were not formatted")

    def test_what_is_not_there(self):
        for words in (("completion", "tcsh"), ("completion",), ("man", "sinks")):
            with self.subTest(words=words):
                done = self.lull(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))


if __name__ == "__main__":
    lull_case.main()

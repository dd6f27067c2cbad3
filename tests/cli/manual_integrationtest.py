"""Completions and manual pages: the shells and man take them, and they say what --help
says. What has no shell here (zsh, fish) is only looked at as text."""

import os
import re
import shutil
import subprocess
import unittest

import lull_case
from lull_case import ARGUMENTS, LullCase


class Manual(LullCase):
    def printed(self, *arguments):
        done = self.lull(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def verbs(self):
        return re.findall(r"^  (\w+) ", self.printed("--help").split("Subcommands:")[1]
                          .split("\n\n")[0], re.M)

    def options(self, verb):
        return set(re.findall(r"^  (?:-h,)?(--[\w-]+)", self.printed(verb, "--help"), re.M))

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

    def test_zsh_and_fish_get_all_verbs_and_options(self):
        for shell, dashes in (("zsh", "--"), ("fish", "-l ")):
            script = self.printed("completion", shell)
            for verb in self.verbs():
                self.assertIn(verb, script)
                for option in self.options(verb):
                    self.assertIn(dashes + option[2:], script)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script, text=True, check=True)
            else:
                print(f"no {shell} here: its script was not run")

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

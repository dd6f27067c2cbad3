"""What lull recorded, for Python programs.

    import lull
    run = lull.load("resnet")            # a job's name or the beginning of its id
    run.summary["advice"]                # what to change first
    for row in run.sync_points:          # rows are dictionaries
        print(row["site"]["file"], row["site"]["line"], row["wasted_ms"])
    run.gaps.to_dataframe()              # where pandas is installed

All of it is what the `lull` command prints with --json: times in milliseconds, None where
something is not known. This module knows no numbers of its own and needs no other package.
"""

import json
import os
import shutil
import subprocess
import sysconfig

__all__ = ["Error", "Rows", "Run", "WrongUsage", "fleet", "jobs", "load", "schema"]


class Error(Exception):
    """What the `lull` command said. `exit_code` is its own, None if it could not be run."""

    def __init__(self, message, exit_code=None):
        super().__init__(message)
        self.exit_code = exit_code


class WrongUsage(Error):
    """An option that there is not, or a value that it does not take (exit code 2)."""


class Rows(list):
    """Dictionaries, in the order in which lull has them."""

    def to_dataframe(self):
        """A pandas.DataFrame. What lies in a row is a column of its own: "site.file"."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_dataframe() needs pandas: pip install pandas") from error
        return pandas.json_normalize(list(self))


class Run:
    """A recorded job. Each answer is asked for when it is first used, and kept."""

    def __init__(self, job="", binary=None, collector=(), **options):
        self._binary = binary or _find_binary()
        self._collector = list(collector)
        self._options = {"top": 0, **options}
        self._answers = {}
        self._job = job
        # From here on it is this very job, also where a newer one has its name.
        self._job = self.answer("report")["job"]["id"]
        self.id = self._job

    def answer(self, verb, **options):
        """All that `lull VERB JOB --json` prints. Options as those of the command
        (by="stack", phase="all", top=5); they come before those of load()."""
        options = {**self._options, **options}
        key = (verb, tuple(sorted(options.items())))
        if key not in self._answers:
            self._answers[key] = _ask(self._binary, verb, [self._job] if self._job else [],
                                      self._collector, options)
        return self._answers[key]

    def rows(self, verb, name, **options):
        """A list of that answer."""
        return Rows(self.answer(verb, **options)[name])

    def __repr__(self):
        return "<lull.Run %s (%s)>" % (self.job["name"], self.id[:8])


# Name of the property: verb, key of the answer.
_LISTS = {
    "gaps": ("gaps", "gaps"),
    "causes": ("gaps", "causes"),
    "sync_points": ("syncs", "sync_points"),
    "host_waits": ("waits", "host_waits"),
    "hot_lines": ("hot", "lines"),
    "kernels": ("kernels", "kernels"),
    "copies": ("kernels", "copies"),
    "ops": ("ops", "ops"),
    "steps": ("steps", "steps"),
    "loaders": ("data", "loaders"),
    "loader_lines": ("data", "lines"),
    "regions": ("regions", "regions"),
    "ranks": ("ranks", "ranks"),
    "stacks": ("stacks", "stacks"),
    "gc_pauses": ("gc", "gc_pauses"),
    "allocation_sites": ("allocs", "allocation_sites"),
    "memory": ("memory", "memory"),
    "malloc_retries": ("memory", "malloc_retries"),
    "processes": ("report", "processes"),
    "devices": ("report", "devices"),
    "non_finite": ("report", "non_finite"),
    "sources": ("report", "sources"),
}
_PARTS = ("job", "summary", "gpu", "step_totals", "losses", "overhead")  # of the report

for _name, (_verb, _key) in _LISTS.items():
    setattr(Run, _name, property(lambda self, verb=_verb, key=_key: self.rows(verb, key),
                                 doc="`%s` of `lull %s`." % (_key, _verb)))
for _name in _PARTS:
    setattr(Run, _name, property(lambda self, key=_name: self.answer("report")[key],
                                 doc="`%s` of `lull report`." % _name))


def load(job="", binary=None, collector=None, token_file=None, tls_ca=None, **options):
    """A recorded job, by its name or the beginning of its id; the newest without.

    Options hold for all answers, and are those of the command: rank=0, pid=..., by="stack",
    phase="all", since="2m", until="10m", top=20 (without it: all rows).

    Error if there is no such job, or no collector that could be asked.
    """
    return Run(job, binary, _collector_options(collector, token_file, tls_ca), **options)


def jobs(binary=None, collector=None, token_file=None, tls_ca=None, tag=None):
    """All jobs that the collector knows, newest first; with `tag` those that have it."""
    return Rows(_ask(binary or _find_binary(), "jobs", [],
                     _collector_options(collector, token_file, tls_ca), {"top": 0, "tag": tag})["jobs"])


def fleet(binary=None, collector=None, token_file=None, tls_ca=None, **options):
    """Idle GPU time of all jobs together: the whole answer of `lull fleet`, a dictionary.

    Options are those of the command: since="24h", until=..., name=..., user=..., host=...,
    tag=... (or a list of tags), by="week", top=10 (without it: up to 10,000 rows).
    """
    return _ask(binary or _find_binary(), "fleet", [],
                _collector_options(collector, token_file, tls_ca), {"top": 0, **options})


def schema(verb, binary=None):
    """The JSON Schema of a verb's answer."""
    return json.loads(_run([binary or _find_binary(), "schema", "--", verb]))


def _collector_options(collector, token_file, tls_ca):
    given = (("collector", collector), ("token-file", token_file), ("tls-ca", tls_ca))
    return ["--%s=%s" % (name, value) for name, value in given if value]


def _ask(binary, verb, words, collector, options):
    command = [binary, verb, "--json", *collector]
    for name, value in sorted(options.items()):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                command.append("--%s=%s" % (name.replace("_", "-"), one))
    return json.loads(_run([*command, "--", *words]))


def _run(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
    except OSError as error:
        raise Error("%s cannot be run: %s" % (command[0], error.strerror)) from error
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode < 0:
        said = "%s was ended by signal %d %s" % (command[0], -done.returncode, said)
    raise (WrongUsage if done.returncode == 2 else Error)(said, done.returncode)


def _find_binary():
    """The command that came with this module, else the one of this environment or of PATH."""
    beside = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for path in (_of_this_wheel(),
                 os.path.join(beside, "bin", "lull"),  # of pip install --target
                 os.path.join(sysconfig.get_path("scripts") or "", "lull"),
                 shutil.which("lull")):
        if path and os.access(path, os.X_OK):
            return path
    raise Error("there is no `lull` command here: install lull's wheel, or put it on PATH")


def _of_this_wheel():
    """Where the wheel that holds this very file put its command."""
    try:
        import importlib.metadata
        files = importlib.metadata.files("lull") or []
        paths = [os.path.realpath(str(file.locate())) for file in files
                 if file.name == "lull" or file.name == "__init__.py"]
    except Exception:  # not installed as a wheel, or its notes are damaged
        return None
    if os.path.realpath(__file__) not in paths:
        return None
    return next((path for path in paths if os.path.basename(path) == "lull"), None)

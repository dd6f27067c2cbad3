#!/usr/bin/env python3
"""`srun lull run` over three nodes of a Slurm of the distribution, clocks days apart: one job with
no more configuration than the collector's address and token, and the late rank named.

The nodes are slurmd of this machine, which each rank leaves for a time namespace of its own
(hosts_test.py)."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import guest
import hosts_test
from loader_test import PUPPETS, expected
from own_clock import OwnClock

NODES = 3
PROGRAMS = ("slurmctld", "slurmd", "srun", "sinfo")
DAY = 86_400
CONFIGURATION = """
ClusterName=lull
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
{nodes}
PartitionName=p Nodes=ALL Default=YES OverSubscribe=YES
"""
# Each rank on a host of its own, by clock and name.
ON_ITS_HOST = (f'exec unshare -U -r -T --monotonic $(({DAY} * (SLURM_PROCID + 1))) -u --fork '
               'sh -c "hostname node$SLURM_PROCID && exec \\"\\$@\\"" sh "$@"')


def refusal():
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} here (Debian: apt-get install slurm-wlm)"
    return hosts_test.refusal()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Slurm(hosts_test.Cluster):
    @classmethod
    def setUpClass(cls):
        why = refusal()
        if why:
            print(f"SKIPPED: {why}", file=sys.stderr)
            raise unittest.SkipTest(why)
        super().setUpClass()
        cls.temporary = tempfile.TemporaryDirectory(prefix="lull-slurm-")
        cls.cluster = cls.temporary.name
        host, ports = socket.gethostname().split(".")[0], free_ports(NODES + 1)
        nodes = "\n".join(
            f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[i + 1]} CPUs=8"
            for i in range(NODES))
        path = os.path.join(cls.cluster, "slurm.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(host=host, ports=ports, nodes=nodes,
                                            folder=cls.cluster, user=getpass.getuser()))
        for name in ["state"] + [f"spool.n{i}" for i in range(NODES)]:
            os.mkdir(os.path.join(cls.cluster, name))
        cls.environment = {**cls.host.environment, "SLURM_CONF": path}
        cls.daemons = [cls.start("slurmctld", "-D")]
        cls.daemons += [cls.start("slurmd", "-D", "-N", f"n{i}") for i in range(NODES)]
        guest.wait_until(cls.all_idle, 60)

    @classmethod
    def start(cls, *command):
        return subprocess.Popen(command, env=cls.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def all_idle(cls):
        for daemon in cls.daemons:
            assert daemon.poll() is None, f"{daemon.args} ended with {daemon.returncode}"
        done = guest.execute(["sinfo", "-h", "-o", "%D %t"], cls.environment, timeout=60)
        return done.stdout.split() == [str(NODES), "idle"]

    @classmethod
    def tearDownClass(cls):
        for daemon in reversed(cls.daemons):
            daemon.terminate()
        for daemon in cls.daemons:
            daemon.wait(60)
        cls.temporary.cleanup()
        super().tearDownClass()

    def srun(self, name):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        store = os.path.join(folder, "store")
        environment = {**self.environment, **guest.lull_environment(folder),
                       "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        done = guest.execute(
            ["srun", "-N", str(NODES), "-n", str(NODES), "sh", "-c", ON_ITS_HOST, "sh",
             guest.LULL, "run", "--quiet", "--name", name, "--overhead-budget", "100",
             "--collector", self.address, "--token-file", f"{self.database}.tokens", "--",
             self.python, "-W", "ignore", os.path.join(PUPPETS, "ddp.py"), "--store", store,
             "--late"],
            environment, timeout=300)
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
        return OwnClock(store, [(rank + 1) * DAY for rank in range(NODES)])

    def test_srun_on_three_nodes_is_one_job_and_its_late_rank_is_named(self):
        own = self.srun("step")
        (job,) = self.ask_all("jobs")["jobs"]
        self.assertEqual(sorted(part["host"] for part in job["parts"]),
                         ["node0", "node1", "node2"])
        answer = self.ask_all("ranks", "step", "--phase", "all")
        print(f"{own}, by lull {answer['ranks'][0]}", file=sys.stderr)
        self.assertEqual(answer["world_size"], NODES)
        self.assertGreater(answer["clock"]["error_ns"], 0)
        first = answer["ranks"][0]
        self.assertEqual((first["rank"], first["host"]), (1, "node1"))
        sleep = first["culprits"][0]
        self.assertEqual(sleep["cause"], "sleep")
        self.assertEqual((os.path.basename(sleep["file"]), sleep["line"], sleep["function"]),
                         ("ddp.py", expected.site("ddp.py", "late"), "augment"))
        own.check(self, sleep, 2)

    def test_two_steps_of_one_allocation_are_two_jobs(self):
        self.srun("first")
        self.srun("second")
        self.assertEqual(sorted((job["name"], len(job["parts"]))
                                for job in self.ask_all("jobs")["jobs"]),
                         [("first", NODES), ("second", NODES)])


if __name__ == "__main__":
    unittest.main()

"""ClickHouse, as the distribution has it and as chdb of PyPI has it, on a port of loopback."""

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import guest

HERE = os.path.dirname(os.path.abspath(__file__))
CHDB = os.environ.get("LULL_CHDB") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "chdb")
CONFIGURATION = """<yandex>
 <logger><level>warning</level><log>{folder}/server.log</log>
  <errorlog>{folder}/errors.log</errorlog></logger>
 <listen_host>127.0.0.1</listen_host><http_port>{port}</http_port><tcp_port>{tcp}</tcp_port>
 <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
 <format_schema_path>{folder}/formats/</format_schema_path>
 <users_config>users.xml</users_config><default_profile>default</default_profile>
 <default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>
 <timezone>UTC</timezone><remote_servers><two>{shards}</two></remote_servers></yandex>
"""
SHARD = ("<shard><replica><host>127.0.0.1</host><port>{}</port><user>writer</user>"
         "<password>secret word</password></replica></shard>")
USERS = """<yandex>
 <profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
 <quotas><default/></quotas><users><writer><password>secret word</password>
  <networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
 </writer></users></yandex>
"""


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Server:
    """What both have: queries over HTTP."""

    login = {}  # headers

    def __init__(self, folder, port):
        self.folder, self.port, self.process = folder, port, None
        self.url = f"http://127.0.0.1:{port}"

    def start(self):
        with open(os.path.join(self.folder, "output"), "a", encoding="utf-8") as output:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT)
        guest.wait_until(self.answers, 60)

    def answers(self):
        assert self.process.poll() is None, f"it ended: see {self.folder}"
        try:
            return self.query("SELECT 1").strip() == b"1"
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def kill(self):
        self.stop(signal.SIGKILL)

    def query(self, sql):
        request = urllib.request.Request(self.url, data=sql.encode(), headers=self.login)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{sql}: {error.read().decode(errors='replace')}") from error

    def rows(self, sql):
        """[{column: value}]"""
        answer = json.loads(self.query(sql + " FORMAT JSON"))
        # UInt64 is quoted by old servers.
        whole = {column["name"] for column in answer["meta"] if "Int64" in column["type"]}
        return [{name: int(value) if name in whole else value for name, value in row.items()}
                for row in answer["data"]]


class ClickHouse(Server):
    login = {"X-ClickHouse-User": "writer", "X-ClickHouse-Key": "secret word"}
    environment = {"CLICKHOUSE_USER": "writer", "CLICKHOUSE_PASSWORD": "secret word"}

    def __init__(self, folder, ports=None, shards=()):
        port, tcp = ports or free_ports(2)
        super().__init__(folder, port)
        for name in ("data", "tmp", "formats"):
            os.makedirs(os.path.join(folder, name))
        text = CONFIGURATION.format(
            folder=folder, port=port, tcp=tcp,
            shards="".join(map(SHARD.format, shards or [tcp])))
        for name, content in (("config.xml", text), ("users.xml", USERS)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)

    @staticmethod
    def is_there():
        return shutil.which("clickhouse-server") is not None

    def command(self):
        return ["clickhouse-server", f"--config-file={self.folder}/config.xml"]


class Chdb(Server):
    environment = {}

    def __init__(self, folder):
        super().__init__(folder, free_ports(1)[0])

    @staticmethod
    def is_there():
        return os.path.exists(os.path.join(CHDB, "bin", "python"))

    def command(self):
        return [os.path.join(CHDB, "bin", "python"), os.path.join(HERE, "chdb_server.py"),
                os.path.join(self.folder, "data"), str(self.port)]

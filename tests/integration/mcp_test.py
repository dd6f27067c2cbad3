#!/usr/bin/env python3
"""`lull mcp` as a client meets it: the protocol over its stdin and stdout, the same answers
as --json has, bounded, and nothing that a client sends ends it or makes it do more."""

import json
import os
import subprocess
import tempfile
import unittest

import guest
import loader_test
import page_test

SIM = os.environ["LULL_SIM"]
MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}}


class Client:
    """Sends messages as lines, and reads one line for each request."""

    def __init__(self, environment, *options):
        self.process = subprocess.Popen([guest.LULL, "mcp", *options], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.last = 0

    def send(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else line.encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def notify(self, method, **params):
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        """The result, or the error."""
        self.last += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method,
                              "params": params}))
        answer = self.read()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self.last), answer
        assert len(answer) == 3, answer
        return answer.get("result") or answer.get("error") or {}

    def call(self, name, **arguments):
        """(is it an error, the text)"""
        result = self.ask("tools/call", name=name, arguments=arguments)
        (content,) = result["content"]
        assert content["type"] == "text"
        return result["isError"], content["text"]

    def close(self):
        """(exit status, what is left of stdout, stderr)"""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


class Mcp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", "turns", "--gpu", "continuous", "--",
             "python3", os.path.join(loader_test.PUPPETS, "patterns.py"), "sync"],
            {**cls.host.environment, "LD_LIBRARY_PATH": SIM, "LULL_SIM_CONFIG": "kernel_us=300"})
        assert done.status == 0, done.stderr
        guest.wait_until(lambda: cls.json("report", "turns")["job"]["ended"])

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def json(cls, verb, *arguments):
        done = guest.execute([guest.LULL, verb, *arguments, "--json"], cls.host.environment)
        assert done.status == 0, done.stderr
        return json.loads(done.stdout)

    def setUp(self):
        self.client = Client(self.host.environment)
        self.addCleanup(self.end)

    def end(self):
        if self.client.process.stdin.closed:
            return
        self.assertEqual(self.client.close(), (0, b"", b""))

    def shake_hands(self):
        result = self.client.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                                 clientInfo={"name": "test", "version": "1"})
        self.client.notify("notifications/initialized")
        return result

    def tell(self, name, **arguments):
        failed, text = self.client.call(name, **arguments)
        self.assertFalse(failed, text)
        self.assertLessEqual(len(text.encode()), 60_000)
        return json.loads(text)

    def test_a_session_with_a_handshake(self):
        result = self.shake_hands()
        self.assertEqual(result["protocolVersion"], "2025-06-18")
        self.assertEqual(result["serverInfo"]["name"], "lull")
        self.assertEqual(self.client.ask("ping"), {})
        tools = {tool["name"]: tool for tool in self.client.ask("tools/list")["tools"]}
        jobs = self.tell("lull_jobs")
        self.assertIn("turns", [job["name"] for job in jobs["jobs"]])
        for name, tool in tools.items():
            self.assertRegex(name, "^lull_[a-z]+$")
            self.assertEqual(tool["inputSchema"]["type"], "object")
            self.assertTrue(tool["description"])
            self.assertIs(tool["annotations"]["readOnlyHint"], True)
        self.assertEqual({name[5:] for name in tools} - {"jobs", "fleet", "schema"},
                         {"report", "gaps", "hot", "kernels", "ops", "steps", "data", "regions",
                          "ranks", "stacks", "syncs", "waits", "gc", "allocs", "memory"})

    def test_a_session_without_one(self):
        result = self.client.ask("server/discover", **MODERN)
        self.assertEqual((result["resultType"], result["supportedVersions"]),
                         ("complete", ["2026-07-28"]))
        self.assertEqual(self.client.ask("tools/list", **MODERN)["cacheScope"], "private")
        result = self.client.ask("tools/call", name="lull_jobs", **MODERN)
        self.assertEqual((result["resultType"], result["isError"]), ("complete", False))
        wrong = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}}
        self.assertEqual(self.client.ask("tools/list", **wrong)["code"], -32022)

    def test_answers_are_those_of_the_verbs(self):
        for verb, key in (("syncs", "sync_points"), ("gaps", "gaps"), ("kernels", "kernels"),
                          ("allocs", "allocation_sites")):
            told = self.tell("lull_" + verb, job="turns", top=3, by="stack", phase="all")
            same = self.json(verb, "turns", "--top", "3", "--by", "stack", "--phase", "all")
            self.assertEqual(told[key], same[key], verb)
            self.assertTrue(told[key])
        report = self.tell("lull_report", job="turns")
        self.assertEqual(report["summary"],
                         self.json("report", "turns", "--top", "10")["summary"])

    def test_long_answers_are_cut_and_say_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(page_test.trace([f"{chr(65 + i % 26) * 900}{i}" for i in range(60)]
                                          + ["m" * 100_000]), file)
            done = guest.execute([guest.LULL, "import", "--quiet", path, "--name", "long"],
                                 self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        told = self.tell("lull_kernels", job="long", top=100)
        cut = told["cut"]["rows"]["kernels"]
        self.assertEqual(cut["shown"], len(told["kernels"]))
        self.assertEqual(cut["of"], len(self.json("kernels", "long", "--top", "100")["kernels"]))
        self.assertGreater(cut["of"], cut["shown"])
        self.assertGreater(cut["shown"], 5)

    def test_what_a_tool_cannot_do_is_told_to_the_model(self):
        for name, arguments, said in (
                ("lull_syncs", {"job": "nothing of that name"}, "no job"),
                ("lull_syncs", {"top": 0}, "top is to be a whole number from 1 to 100"),
                ("lull_syncs", {"top": "3"}, "top is to be"),
                ("lull_syncs", {"top": 2 ** 64 - 1}, "top is to be"),
                ("lull_syncs", {"by": "file"}, "line, function, stack"),
                ("lull_syncs", {"since": "yesterday"}, "is no time"),
                ("lull_syncs", {"rank": -1}, "rank is to be"),
                ("lull_syncs", {"job": ["turns"]}, "job is to be a text"),
                ("lull_syncs", {"html": "/tmp/x"}, "there is no argument 'html'"),
                ("lull_syncs", {"collector": "unix:/x"}, "there is no argument"),
                ("lull_schema", {}, "verb is missing")):
            with self.subTest(name=name, arguments=arguments):
                failed, text = self.client.call(name, **arguments)
                self.assertTrue(failed)
                self.assertIn(said, text)

    def test_schemas_are_at_hand(self):
        schema = self.tell("lull_schema", verb="gaps")
        done = guest.execute([guest.LULL, "schema", "gaps"], self.host.environment)
        self.assertEqual(schema, json.loads(done.stdout))
        self.tell("lull_schema", verb="report")

    def test_no_verb_that_does_something_is_a_tool(self):
        for name in ("lull_run", "lull_arm", "lull_attach", "lull_export", "run", "sh", ""):
            error = self.client.ask("tools/call", name=name, arguments={})
            self.assertEqual(error["code"], -32602, name)

    def test_whatever_it_is_sent_it_goes_on(self):
        for line, code in ((b"x" * 3_000_000, -32700), (b"[" * 1_000_000, -32700),
                           (b"\xff\xfe\x00", -32700), (b"{}", -32600), (b"[]", -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"rm"}', -32601)):
            self.client.send(line)
            self.assertEqual(self.client.read()["error"]["code"], code, line[:40])
        self.client.send(b"")
        self.client.notify("notifications/cancelled", requestId=1)
        self.assertEqual(self.client.ask("ping"), {})

    def test_a_last_line_without_its_end_is_answered(self):
        self.client.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        status, out, _ = self.client.close()
        self.assertEqual((status, json.loads(out)["id"]), (0, 1))

    def test_a_client_that_is_gone_ends_it(self):
        self.client.process.stdout.close()
        for _ in range(2):
            try:
                self.client.send('{"jsonrpc":"2.0","id":1,"method":"ping"}')
            except BrokenPipeError:
                break
        try:
            self.client.process.stdin.close()
        except BrokenPipeError:
            pass
        self.assertNotEqual(self.client.process.wait(timeout=60), 0)
        self.client.process.stderr.close()

    def test_without_a_collector_it_says_so(self):
        client = Client(self.host.environment, "--collector", "unix:/nowhere/collector.sock")
        failed, text = client.call("lull_jobs")
        self.assertTrue(failed)
        self.assertIn("/nowhere/collector.sock", text)
        self.assertEqual(client.ask("ping"), {})
        self.assertEqual(client.close()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

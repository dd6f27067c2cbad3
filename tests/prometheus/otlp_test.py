#!/usr/bin/env python3
"""A receiver made of the opentelemetry-proto of PyPI gets from `lulld --otlp` what
`lulld --metrics` tells Prometheus, and knows each field of it."""

import concurrent.futures
import os
import queue
import sys
import unittest

PACKAGES = os.environ.get("LULL_OTLP") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "otlp")
PYTHON = os.path.join(PACKAGES, "bin", "python")
if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(PACKAGES):
    os.execv(PYTHON, [PYTHON, *sys.argv])
import grpc
from opentelemetry.proto.collector.metrics.v1 import (metrics_service_pb2,
                                                      metrics_service_pb2_grpc)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
from guest import wait_until
from metrics_case import HOSTILE, MetricsCase, of

SUFFIXES = {"s": "_seconds", "By": "_bytes", "1": "", "": ""}
# What an answer says of itself.
OF_THE_ANSWER = {"lull_metrics_age_seconds", "lull_metrics_answer_seconds"}


class Receiver(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self):
        self.requests, self.headers = queue.Queue(), {}
        self.answer = metrics_service_pb2.ExportMetricsServiceResponse()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def Export(self, request, context):  # the name that the service has
        self.headers = dict(context.invocation_metadata())
        self.requests.put(request)
        return self.answer


def unknown_fields(message):
    """The bytes of fields, of it and of what it is made of, that its schema does not know."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return message.ByteSize() - known.ByteSize()


def samples_of(request):
    """As parse() of metrics_case.py gives them of Prometheus's text."""
    samples = {}
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                name = metric.name.replace(".", "_") + SUFFIXES[metric.unit]
                kind = metric.WhichOneof("data")
                if kind == "sum":
                    assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
                    name += "_total"
                for point in getattr(metric, kind).data_points:
                    labels = frozenset((one.key, one.value.string_value)
                                       for one in point.attributes)
                    if kind == "summary":
                        told = {"_sum": point.sum, "_count": point.count}
                    else:
                        told = {"": getattr(point, point.WhichOneof("value"))}
                    for end, value in told.items():
                        assert (name + end, labels) not in samples, (name, labels)
                        samples[name + end, labels] = value
    return samples


class Otlp(MetricsCase):
    @classmethod
    def setUpClass(cls):
        cls.receiver = Receiver()
        os.environ.update({"OTEL_EXPORTER_OTLP_HEADERS": "Api-Key=a%20secret",
                           "OTEL_METRIC_EXPORT_INTERVAL": "5000",
                           "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=trainer-0"})
        cls.options = ["--otlp", f"http://127.0.0.1:{cls.receiver.port}"]
        super().setUpClass()
        assert cls.start_ranks(HOSTILE).wait(120) == 0
        cls.run_id = cls.run_of(HOSTILE)
        cls.scraped = cls.wait_for_end(cls.run_id)
        while True:  # of the same answer, or one after it: nothing changes any more
            cls.request = cls.receiver.requests.get(timeout=60)
            cls.pushed = samples_of(cls.request)
            if of(cls.pushed, "lull_run_exit_status", run=cls.run_id) is not None:
                break

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.receiver.server.stop(0)

    def test_numbers_are_those_that_prometheus_gets(self):
        self.assertGreater(len(self.pushed), 100)
        ours = {key: value for key, value in self.scraped.items() if key[0] not in OF_THE_ANSWER}
        theirs = {key: value for key, value in self.pushed.items() if key[0] not in OF_THE_ANSWER}
        self.assertEqual(set(ours), set(theirs))
        for key, value in ours.items():
            self.assertAlmostEqual(theirs[key], value, places=6, msg=key)

    def test_every_field_is_one_of_the_schema(self):
        self.assertEqual(unknown_fields(self.request), 0)

    def test_says_who_tells_it_and_since_when(self):
        attributes = {one.key: one.value.string_value
                      for one in self.request.resource_metrics[0].resource.attributes}
        self.assertEqual(attributes["service.name"], "lulld")
        self.assertEqual(attributes["k8s.pod.name"], "trainer-0")
        self.assertEqual(self.receiver.headers["api-key"], "a secret")
        start = of(self.pushed, "lull_run_start_timestamp_seconds", run=self.run_id)
        for metric in self.request.resource_metrics[0].scope_metrics[0].metrics:
            if metric.name == "lull.gpu.busy":
                for point in metric.sum.data_points:
                    self.assertAlmostEqual(point.start_time_unix_nano / 1e9, start, places=3)
                    self.assertGreater(point.time_unix_nano, point.start_time_unix_nano)

    def test_says_what_a_receiver_refuses(self):
        self.receiver.answer.partial_success.rejected_data_points = 5
        self.receiver.answer.partial_success.error_message = "too old"

        def told():
            self.errors.seek(0)
            return "it refused 5 of the points: too old" in self.errors.read()
        try:
            wait_until(told)
        finally:
            self.receiver.answer.Clear()

    def test_pushes_once_more_at_its_end(self):
        while not self.receiver.requests.empty():
            self.receiver.requests.get()
        self.end_collector()
        try:
            last = samples_of(self.receiver.requests.get(timeout=10))
            self.assertEqual(of(last, "lull_run_exit_status", run=self.run_id), 0)
        finally:
            self.start_collector()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))

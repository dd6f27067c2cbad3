#!/usr/bin/env python3
"""The CUDA build of PyTorch on the simulated device, under lull: trainings that
synchronise, allocate too much, or wander between GPU and CPU, and what lull says of
them. Counts are exact, times are those of the ground truth."""

import os
import unittest

import scenario
from scenario import Scenario, TorchCase, guest, installed, python

STEPS = 10


def setUpModule():
    global host
    host = guest.Host()
    os.environ.update(host.environment)


def tearDownModule():
    host.close()


class WhatPyTorchDoes(TorchCase):
    def test_pytorch_works_on_the_simulated_device_and_does_not_notice_lull(self):
        # Workers are started in no fixed order, nothing else is printed in any.
        host.check_unnoticed(self, python("works.py"), timeout=900, status=0,
                             env={"LULL_SIM_CONFIG": scenario.CONFIG})

    def test_nor_does_it_while_the_gpu_is_traced_all_the_time(self):
        alone = host.alone(python("works.py"), timeout=900,
                           env={"LULL_SIM_CONFIG": scenario.CONFIG})
        traced = Scenario(host, "works", python("works.py"))
        self.assert_ran(traced)
        self.assertEqual((traced.done.stdout, traced.done.stderr), (alone.stdout, alone.stderr))
        self.assertGreater(traced.gpu["kernels"], 0)
        self.assertEqual(traced.gpu["records_bad"], 0)


class MetricsThatSynchronise(TorchCase):
    @classmethod
    def setUpClass(cls):
        # Kernels slow enough that the device is always behind: every wait is real.
        def run(name, *options):
            return Scenario(host, name, python("metrics.py", "--steps", str(STEPS), *options),
                            "kernel_us=100")

        cls.naive, cls.fixed = run("naive"), run("fixed", "--fixed")
        aggregation = installed("torchmetrics.aggregation")
        # The second of the two: update() of MeanMetric, the first is the value's.
        update = scenario.line_of(aggregation, "class MeanMetric")
        cls.weight = scenario.line_of(aggregation, "weight = torch.as_tensor(weight", update)
        cls.nan = scenario.line_of(aggregation, "if nans.any() or nans_weight.any()")
        # All that is read back is that search, but for the last line of the script;
        # the last things uploaded from pageable memory are the weights.
        cls.nan_calls = cls.naive.syncs_after("DtoH")[: 2 * STEPS]
        cls.weight_calls = cls.naive.syncs_after("HtoD", pageable=True)[-STEPS:]

    def rows(self, run, line):
        return run.sync_rows("torchmetrics/aggregation.py", line)

    def test_both_trainings_run(self):
        for run in (self.naive, self.fixed):
            self.assert_ran(run)
            self.assertEqual(run.done.stdout, "loss 0.000\n")
            self.assert_nothing_lost(run)

    def test_the_weight_that_becomes_a_tensor_is_named_once_a_step(self):
        rows = self.rows(self.naive, self.weight)
        self.assertEqual({api: row["calls"] for api, row in rows.items()},
                         {"cudaMemcpyAsync": STEPS, "cudaStreamSynchronize": STEPS})
        for row in rows.values():
            self.assertEqual(row["site"]["function"], "MeanMetric.update")
        self.assertEqual(rows["cudaMemcpyAsync"]["bytes"], 4 * STEPS)

    def test_the_search_for_nan_is_named_twice_a_step(self):
        rows = self.rows(self.naive, self.nan)
        self.assertEqual({api: row["calls"] for api, row in rows.items()},
                         {"cudaStreamSynchronize": 2 * STEPS})
        self.assertEqual(rows["cudaStreamSynchronize"]["site"]["function"],
                         "BaseAggregator._cast_and_nan_check_input")

    def test_the_time_that_both_lines_blocked_is_the_real_one(self):
        self.assert_blocked(self.rows(self.naive, self.nan)["cudaStreamSynchronize"],
                            self.nan_calls)
        self.assert_blocked(self.rows(self.naive, self.weight)["cudaStreamSynchronize"],
                            self.weight_calls)

    def test_the_gpu_time_that_both_lines_wasted_is_the_real_one(self):
        nan = self.rows(self.naive, self.nan)
        self.assert_wasted(self.naive, nan.values(), self.nan_calls)
        uploads = self.naive.copies("HtoD", pageable=True)[-STEPS:]
        self.assert_wasted(self.naive, self.rows(self.naive, self.weight).values(),
                           self.weight_calls + uploads)

    def test_all_that_the_gpu_did_is_known(self):
        for run in (self.naive, self.fixed):
            self.assert_gpu_truth(run)

    def test_steps_end_where_the_optimizer_was_called(self):
        for run in (self.naive, self.fixed):
            steps = run.ask("steps")
            self.assertEqual((steps["source"], steps["count"]), ("optimizer", STEPS))
            # The first call begins a step: what was before is the start of the program.
            self.assertTrue(all(row["traced"] for row in steps["steps"][1:]))

    def test_kernels_have_their_line_and_operator(self):
        search = [row for row in self.naive.kernels["kernels"]
                  if row["operator"] == "aten::ne" and row["calls"] == 2 * STEPS]
        self.assertEqual([row["site"]["function"] for row in search],
                         ["BaseAggregator._cast_and_nan_check_input"])
        forward = scenario.line_of(os.path.join(scenario.HERE, "metrics.py"),
                                   "return F.relu(self.bn2(self.conv2(y))")
        (convolutions,) = self.naive.kernels_of("xmma_fprop_implicit_gemm")
        self.assertEqual((convolutions["operator"], convolutions["site"]["line"]),
                         ("aten::cudnn_convolution", forward))
        for kernel in ("xmma_wgrad_implicit_gemm", "xmma_dgrad_implicit_gemm"):
            (row,) = self.naive.kernels_of(kernel)
            self.assertEqual((row["operator"], row["site"]["function"]),
                             ("ConvolutionBackward0", "ConvolutionBackward0"))

    def test_every_synchronisation_of_the_program_is_reported(self):
        for run in (self.naive, self.fixed):
            reported = sum(row["calls"] for row in run.syncs["sync_points"]
                           if row["api"] == "cudaStreamSynchronize")
            self.assertEqual(reported, len(run.truth.calls("cudaStreamSynchronize")))

    def test_every_launch_is_counted_also_those_of_cublas_and_cudnn(self):
        for run in (self.naive, self.fixed):
            launched = len(run.truth.calls("cudaLaunchKernel"))
            by_libraries = len(run.truth.calls("cuLaunchKernel"))
            self.assertGreater(by_libraries, 50 * STEPS)
            processes = run.ask("report")["processes"]
            self.assertEqual(sum(row["launches"] for row in processes), launched + by_libraries)

    def test_after_the_fix_both_lines_are_gone(self):
        self.assertTrue(self.rows(self.naive, self.weight) and self.rows(self.naive, self.nan))
        self.assertEqual((self.rows(self.fixed, self.weight), self.rows(self.fixed, self.nan)),
                         ({}, {}))
        files = {file for file, _ in self.fixed.sites()}
        self.assertNotIn("aggregation.py", files)
        culprits = {os.path.basename(row["culprit"]["file"]) for row in self.fixed.gaps["gaps"]
                    if row["cause"] == "sync"}
        self.assertNotIn("aggregation.py", culprits)


class LossPerToken(TorchCase):
    TOKENS, STEPS = 256, 2
    LOGITS = 8 * 256 * 50257 * 4

    @classmethod
    def setUpClass(cls):
        # No bytes are moved: those that would be filled are more than the machine has.
        def run(name, *arguments, **options):
            return Scenario(host, name,
                            python("per_token_loss.py", "--steps", str(cls.STEPS), *arguments),
                            "data=0;kernel_us=20;kernel_us.CUDAFunctor_add=200", **options)

        cls.naive, cls.fixed = run("per_token"), run("at_once", "--fixed")
        cls.thinned = run("thinned", budget="0.01", gpu="host")

    def sites(self, run):
        """{function: row} of the sites of tensors as large as the logits."""
        return {row["site"]["function"]: row for row in run.allocs["allocation_sites"]
                if row["allocator"] == "torch_cuda" and row["calls"] > 0
                and row["bytes"] == row["calls"] * self.LOGITS}

    def test_all_trainings_run(self):
        for run in (self.naive, self.fixed, self.thinned):
            self.assert_ran(run)
            self.assertEqual(run.done.stdout, "done\n")
            self.assert_nothing_lost(run)

    def test_the_backward_of_the_selection_allocates_all_logits_for_each_token(self):
        row = self.sites(self.naive)["SelectBackward0"]
        self.assertEqual(row["calls"], self.TOKENS * self.STEPS)
        self.assertEqual(row["frees"], row["calls"])
        self.assertTrue(any("SelectBackward0" in frame["function"]
                            for frame in row["native_stack"]), row)

    def test_adding_the_gradients_up_is_on_top_of_the_kernels(self):
        top = self.naive.kernels["kernels"][0]
        self.assertIn("CUDAFunctor_add<float>", top["name"])
        # Losses are added up, and so are the gradients of all logits: for every token
        # but the first.
        self.assertGreaterEqual(top["calls"], 2 * (self.TOKENS - 1) * self.STEPS)
        self.assertIn(top["operator"], ("aten::add", "aten::add_"))
        self.assertGreater(top["share_percent"], 50)
        fixed = self.fixed.kernels_of("CUDAFunctor_add<float>")
        self.assertLess(sum(row["calls"] for row in fixed), 10 * self.STEPS)

    def test_kernels_of_the_backward_pass_have_their_node(self):
        for kernel, node in (("cunn_SoftMaxBackward", "LogSoftmaxBackward0"),
                             ("nll_loss_backward_reduce", "NllLossBackward0")):
            (row,) = self.naive.kernels_of(kernel)
            self.assertEqual((row["calls"], row["operator"], row["site"]["function"]),
                             (self.TOKENS * self.STEPS, node, node))

    def test_all_that_the_gpu_did_is_known(self):
        for run in (self.naive, self.fixed):
            self.assert_gpu_truth(run)

    def test_it_is_named_also_when_stacks_are_thinned(self):
        losses = self.thinned.allocs["losses"]
        self.assertGreater(losses["thinning"], 0)
        self.assertEqual(self.sites(self.thinned)["SelectBackward0"]["calls"],
                         self.TOKENS * self.STEPS)

    def test_the_loss_at_once_does_without(self):
        self.assertNotIn("SelectBackward0",
                         {row["site"]["function"] for row in self.fixed.allocs["allocation_sites"]})


class SuppressionInALoop(TorchCase):
    STEPS, BOXES = 5, 64

    @classmethod
    def setUpClass(cls):
        cls.run_ = Scenario(host, "suppression",
                            python("suppression.py", "--steps", str(cls.STEPS)), "kernel_us=100")

    def rows(self, name):
        return self.run_.sync_rows("suppression.py", scenario.site("suppression.py", name))

    def test_the_detector_runs(self):
        self.assert_ran(self.run_)
        self.assertEqual(self.run_.done.stdout, f"kept {self.STEPS * self.BOXES}\n")
        self.assert_nothing_lost(self.run_)

    def test_each_crossing_between_gpu_and_cpu_has_its_line_and_its_calls(self):
        rounds = self.STEPS * self.BOXES
        others = rounds - self.STEPS  # in the last round no box is left to compare with
        copied = {"cudaMemcpyAsync": others, "cudaStreamSynchronize": others}
        for name, calls in (("best", {"cudaStreamSynchronize": rounds}),
                            ("ratios", copied), ("survivors", copied)):
            rows = self.rows(name)
            self.assertEqual({api: row["calls"] for api, row in rows.items()}, calls, name)
            for row in rows.values():
                self.assertEqual(row["site"]["function"], "suppress")

    def test_the_time_that_the_reads_blocked_is_the_real_one(self):
        # .item() reads into pinned memory and waits for the stream; .cpu() reads into
        # pageable memory, so that the copy itself waits.
        self.assert_blocked(self.rows("best")["cudaStreamSynchronize"],
                            self.run_.syncs_after("DtoH", pageable=False))
        self.assert_blocked(self.rows("ratios")["cudaMemcpyAsync"],
                            self.run_.copies("DtoH", pageable=True))

    def test_all_that_the_gpu_did_is_known(self):
        self.assert_gpu_truth(self.run_)
        self.assertEqual(self.run_.gpu["verdict"], "sync", self.run_.gaps["causes"])

    def test_the_gpu_time_that_each_crossing_wasted_is_the_real_one(self):
        self.assert_wasted(self.run_, self.rows("best").values(),
                           self.run_.syncs_after("DtoH", pageable=False))
        self.assert_wasted(self.run_, self.rows("ratios").values(),
                           self.run_.copies("DtoH", pageable=True)
                           + self.run_.syncs_after("DtoH", pageable=True))

    def test_the_gaps_lie_between_the_lines_of_the_crossings(self):
        lines = {name: scenario.site("suppression.py", name)
                 for name in ("best", "ratios", "survivors")}
        for culprit, after in (("best", "ratios"), ("ratios", "survivors")):
            rows = [row for row in self.run_.gaps["gaps"] if row["cause"] == "sync"
                    and row["culprit"]["line"] == lines[culprit]
                    and row["culprit"]["file"].endswith("suppression.py")]
            between = [row for row in rows if (row["before"]["line"], row["after"]["line"])
                       == (lines[culprit], lines[after])]
            # The last box of an image has nothing to be compared with.
            self.assertGreaterEqual(max(row["count"] for row in between),
                                    self.STEPS * (self.BOXES - 1))
            self.assertGreater(sum(row["total_ms"] for row in between),
                               0.95 * sum(row["total_ms"] for row in rows))


class ALossThatIsNoNumber(TorchCase):
    def test_the_first_one_read_back_has_its_line_and_step(self):
        # Values are read as they are here.
        run = Scenario(host, "exploding", python("exploding.py"), "zero_reads_kib=0",
                       gpu="host")
        self.assert_ran(run)
        self.assertIn("step 6: 0.5\nstep 7: nan\n", run.done.stdout)
        (first,) = run.ask("report")["non_finite"]
        # It counts from 0, and reads its loss after the optimizer's eighth step: in the ninth.
        self.assertEqual((first["value"], first["step"]), ("nan", 9))
        self.assertEqual((os.path.basename(first["site"]["file"]), first["site"]["line"]),
                         ("exploding.py", scenario.site("exploding.py", "log")))


if __name__ == "__main__":
    unittest.main()

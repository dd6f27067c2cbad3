#!/usr/bin/env python3
"""What lull says that tracing costs on the wall clock, of a simulated CUPTI whose price is
known. Bounds are wide: other programs may take the processors from this one."""

import os
import statistics
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tools", "demo_job"),
                os.path.join(ROOT, "tests", "puppets")]
import checks
import guest
import stepping

PUPPETS = os.path.join(ROOT, "tests", "puppets")
STEPS = 600


class CostOnTheWallClock(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def train(self, name, config, *options, steps=STEPS, budget="100", arguments=(),
              step_range="step"):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--step-range", step_range,
             "--overhead-budget", budget, *options, "--", sys.executable,
             os.path.join(PUPPETS, "stepping.py"), str(steps), *arguments],
            {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": "kernel_us=1;" + config})
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))

    def steps(self, name, config, *options, steps=STEPS):
        self.train(name, config, *options, steps=steps)
        return checks.query(guest.LULL, "steps", name)

    def traced(self, name):
        return checks.query(guest.LULL, "report", name)["gpu"]

    def untraced_ms(self, answer):
        return statistics.median(step["duration_ms"] for step in answer["steps"]
                                 if not step["traced"] and step["duration_ms"])

    def test_a_dear_cupti_is_told_from_one_that_costs_nothing(self):
        cheap = self.steps("cheap", "cupti_launch_ns=0")["overhead"]["step_cost"]
        dear = self.steps("dear", "cupti_launch_ns=10000")
        told = dear["overhead"]["step_cost"]
        for cost in (cheap, told):
            self.assertGreaterEqual(cost["windows"], 15, cost)
            for what in ("traced_longer", "paid"):
                self.assertLessEqual(cost[what]["low_percent"], cost[what]["percent"])
                self.assertLessEqual(cost[what]["percent"], cost[what]["high_percent"])
        really = 100 * stepping.LAUNCHES * 0.01 / self.untraced_ms(dear)
        # At least its price; what our own decoding costs comes on top.
        self.assertGreater(told["traced_longer"]["high_percent"], 0.5 * really, told)
        self.assertGreater(told["traced_longer"]["low_percent"], 0, told)
        self.assertGreater(told["traced_longer"]["percent"],
                           cheap["traced_longer"]["percent"], (told, cheap))
        # Of 26 steps six are traced.
        self.assertLess(told["paid"]["percent"], told["traced_longer"]["percent"])

    def test_between_windows_nothing_of_cupti_is_switched_on(self):
        out = os.path.join(self.host.environment["LULL_RUNTIME_DIR"], "..", "observed")
        self.train("switched", "", "--schedule", "skip_first=5,wait=5,warmup=1,active=4,repeat=3",
                   steps=60, arguments=[out])
        with open(out) as file:
            observed = file.read()
        # Before the first window CUPTI is not even loaded. Each step is one character.
        # A window may wait for the device.
        self.assertEqual(len(observed), 60)
        self.assertRegex(observed, "^0{10}(1{5,}0{5,}){3}$")

    def test_a_cost_that_stays_after_a_window_is_found_and_told_apart(self):
        answer = self.steps("stays", "cupti_stays_ns=100000", steps=250)
        cost = answer["overhead"]["step_cost"]
        self.assertIsNotNone(cost["between_longer"], cost)
        self.assertGreater(cost["between_longer"]["low_percent"], 100, cost)
        text = guest.execute([guest.LULL, "steps", "stays"], self.host.environment).stdout
        self.assertIn("steps between windows", " ".join(text.split()))

    def test_the_budget_is_held_on_the_wall_clock(self):
        # A traced launch takes 10 us more, by which our own clocks see nothing.
        dear = "cupti_launch_ns=10000"
        self.train("unbounded", dear, steps=2600)
        self.train("bounded", dear, steps=2600, budget="0.5")
        unbounded, bounded = self.traced("unbounded"), self.traced("bounded")
        self.assertEqual(unbounded["windows"], 100)
        # A job begins with 30 s worth of its budget: 150 ms, and 6 of them a window. Six
        # windows are over before anything is known, and two until it is heeded.
        self.assertGreaterEqual(bounded["windows"], 6)
        self.assertLess(bounded["windows"], 50)
        self.assertLess(bounded["traced_ms"], 0.5 * unbounded["traced_ms"])

    def test_control_steps_tell_what_recording_costs(self):
        for mode in "host", "window":
            name = "controlled_" + mode
            answer = self.steps(name, "", "--gpu", mode, "--control-steps", "10")
            cost = answer["overhead"]["step_cost"]
            self.assertEqual(cost["control_one_in"], 10)
            # None is among the first steps, nor beside a window of six of 26 steps.
            self.assertGreaterEqual(cost["control_steps"], 50 if mode == "host" else 20, cost)
            told = cost["recorded_longer"]
            self.assertLessEqual(told["low_percent"], told["percent"], cost)
            self.assertLessEqual(told["percent"], told["high_percent"], cost)
            # 100 launches of the simulated device are quicker without their hooks.
            self.assertGreater(told["high_percent"], 0, cost)
            text = guest.execute([guest.LULL, "steps", name], self.host.environment).stdout
            self.assertIn("Cost of recording on the wall clock", text)
        report = checks.query(guest.LULL, "report", "controlled_host")
        rested = STEPS * stepping.LAUNCHES - report["summary"]["launches"]
        self.assertEqual(rested % stepping.LAUNCHES, 0)
        self.assertIn(rested // stepping.LAUNCHES, range(55, 61))

    def test_a_sampled_job_records_as_many_steps_as_the_budget_allows(self):
        whole = self.steps("whole", "", "--gpu", "host", steps=4000)["overhead"]
        self.assertIsNone(whole["step_cost"])
        # A fifth of that, told by our own clocks; steps may show more.
        budget = whole["percent"] / 5
        self.train("sampled", "", "--gpu", "host", "--sample-steps", steps=40000,
                   budget=str(budget))
        report = checks.query(guest.LULL, "report", "sampled")
        cost = report["overhead"]["step_cost"]
        self.assertTrue(cost["sampled"])
        recorded, rested = cost["untraced_steps"], cost["rested_steps"]
        self.assertGreater(rested, 3 * recorded, cost)
        self.assertGreater(recorded, 50, cost)
        # Of those that are stored. The cost of the first seconds, before anything is known,
        # is not made up for.
        self.assertLess(report["overhead"]["percent"], whole["percent"] / 2)
        self.assertEqual(report["losses"]["thinned_launches"], 0)
        self.assertEqual(report["summary"]["launches"] % stepping.LAUNCHES, 0)
        self.assertLess(report["summary"]["launches"], 20000 * stepping.LAUNCHES)
        steps = checks.query(guest.LULL, "steps", "sampled")["steps"]
        self.assertLessEqual(len(steps), recorded + 1)  # the first has no beginning
        # Nobody looks at threads while hooks rest, which is most of the time.
        hot = checks.query(guest.LULL, "hot", "sampled")
        looked_ms = sum(role["time_ms"] for role in hot["roles"] if role["role"] == "main")
        self.assertLess(looked_ms, 0.6 * report["job"]["duration_ms"])
        text = guest.execute([guest.LULL, "steps", "sampled"], self.host.environment).stdout
        self.assertIn("Recorded to hold the budget", text)

    def test_without_steps_no_control_step_is_claimed(self):
        self.train("unmarked", "", "--gpu", "host", "--control-steps", "4", steps=50,
                   step_range="another")
        report = checks.query(guest.LULL, "report", "unmarked")
        self.assertEqual(report["summary"]["launches"], 50 * stepping.LAUNCHES)
        self.assertIsNone(report["overhead"]["step_cost"]["recorded_longer"])
        text = guest.execute([guest.LULL, "steps", "unmarked"], self.host.environment).stdout
        self.assertIn("not known, as 0 control steps", " ".join(text.split()))
        self.assertNotIn("rested", text)

    def test_of_few_windows_and_without_untraced_steps_nothing_is_claimed(self):
        few = self.steps("few", "", steps=100)["overhead"]["step_cost"]
        self.assertLess(few["windows"], 6)
        self.assertIsNone(few["paid"])
        self.assertIsNone(few["traced_longer"])
        always = self.steps("always", "", "--gpu", "continuous", steps=100)
        self.assertIsNone((always["overhead"]["step_cost"] or {}).get("paid"))
        host = self.steps("host", "", "--gpu", "host", steps=100)
        self.assertIsNone(host["overhead"]["step_cost"])
        text = guest.execute([guest.LULL, "steps", "few"], self.host.environment).stdout
        self.assertNotIn("wall clock", text)


if __name__ == "__main__":
    unittest.main()

"""What the ranks of ddp.py (tests/puppets) say of themselves: by how much one was late, and why."""

import json

LATE = 1  # the rank that ddp.py makes late


class OwnClock:
    """By our clock, which theirs are `ahead` of, in seconds, by rank."""

    def __init__(self, store, ahead):
        ranks = []
        for rank in range(len(ahead)):
            with open(f"{store}.{rank}", encoding="utf-8") as file:
                ranks.append(json.load(file))
        self.slept_ms_of = [ns / 1e6 for ns in ranks[LATE]["slept"]]
        came = [[ns - seconds * 10**9 for ns in one["arrived"]]
                for one, seconds in zip(ranks, ahead)]
        # When the late rank came to each step's collective, after the last of the others.
        self.late_ms_of = [(step[LATE] - max(step[:LATE] + step[LATE + 1:])) / 1e6
                           for step in zip(*came)]

    def of_sleeps(self, values):
        return [value for value, slept in zip(values, self.slept_ms_of) if slept]

    @property
    def late_ms(self):
        """All that it was late by where it slept. A bit more than the sleeps: who slept computes
        with cold caches, and may wait for a processor."""
        return sum(self.of_sleeps(self.late_ms_of))

    @property
    def slept_ms(self):
        return sum(self.of_sleeps(self.slept_ms_of))

    def disturbed(self):
        """Whether other work kept the ranks apart in steps in which nobody sleeps: then one that
        sleeps is late by more or less than that. One long break is enough for a step to be told
        otherwise, or not at all."""
        others = [abs(ms) for ms, slept in zip(self.late_ms_of, self.slept_ms_of) if not slept]
        return (sum(others) > len(others) or max(others) > 10
                or min(self.of_sleeps(self.late_ms_of)) < 40)

    def check(self, case, sleep, others):
        """Charged is all that a step was late by where nine tenths of that and more are the sleep,
        and the sleep alone elsewhere (docs/ranks.md, Cause). Either is right where their clocks
        might differ about that. The `others` all waited for it."""
        low = high = 0
        for late, slept in zip(self.of_sleeps(self.late_ms_of), self.of_sleeps(self.slept_ms_of)):
            low += late if slept > 0.95 * late else slept
            high += late if slept > 0.85 * late else slept
        for told, times in ((sleep["total_ms"], 1), (sleep["cost_to_others_ms"], others)):
            case.assertGreater(told, 0.95 * times * low)
            case.assertLess(told, 1.05 * times * high)

    def __str__(self):
        return f"slept {self.slept_ms:.1f} ms, late by {self.late_ms:.1f} ms by its own clock"

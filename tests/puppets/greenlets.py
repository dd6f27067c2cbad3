"""Greenlets that switch inside of backward(): calls end in any order, and each runs where
the frames of the others were."""
import greenlet
import torch

PASSES, GREENLETS = 200, 5
everyone, last = [], 0


def nest(depth, function):
    """Calls it below `depth` frames of C."""
    return function() if depth == 0 else sorted(
        [0], key=lambda _: nest(depth - 1, function))


def switch():
    global last
    for step in range(1, len(everyone) + 1):
        number = (last + step) % len(everyone)
        if not everyone[number].dead and everyone[number] is not greenlet.getcurrent():
            last = number
            everyone[number].switch()
            return


def work(depth):
    for i in range(PASSES):
        with torch.enable_grad():
            x = torch.ones(4, requires_grad=True)

            def hook(gradient, i=i):
                nest(1 + i % 5, switch)

            loss = (x * 2).sum()
            x.register_hook(hook)
            nest(depth * (1 + i % 7), loss.backward)


everyone += [greenlet.greenlet(lambda n=n: work(1 + 2 * n)) for n in range(GREENLETS)]
while any(not one.dead for one in everyone):
    for last, one in enumerate(everyone):
        if not one.dead:
            one.switch()
print("done")

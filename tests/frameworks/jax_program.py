"""A small training on JAX: one jitted step with its gradients, parameters that stay on the
device, a loss that is read now and then."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

PAUSE_S = float(os.environ.get("PAUSE_S", "0"))
STEPS = 8
SIZE = 128


def forward(weight, x):
    return jnp.tanh(x @ weight).mean()


@jax.jit
def update(weight, x):
    loss, gradient = jax.value_and_grad(forward)(weight, x)
    return weight - 0.1 * gradient, loss


def main():
    weight = jnp.zeros((SIZE, SIZE), jnp.float32)  # SITE: weight
    batch = np.ones((SIZE, SIZE), np.float32)
    total = 0.0
    for step in range(STEPS):
        x = jax.device_put(batch)  # SITE: upload
        weight, loss = update(weight, x)  # SITE: update
        time.sleep(PAUSE_S)
        if step % 4 == 3:
            total += float(loss)  # SITE: read
    weight.block_until_ready()  # SITE: wait
    print(f"loss {total:.1f}, {np.asarray(weight).shape}")  # SITE: download


main()

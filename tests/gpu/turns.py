"""Programs that start side by side and use the GPU one after the other, so that starting
Python and CUDA, which takes longer than what is measured, is paid for once.

Whoever starts them sets $LULL_GPU_TURNS to a folder, waits for as many files ready.* as it
started programs, and makes the file `go`."""

import contextlib
import fcntl
import os
import time


@contextlib.contextmanager
def turn():
    """Waits for `go`, and until no other program of the folder has its turn; without the
    variable there is nobody to wait for."""
    folder = os.environ.get("LULL_GPU_TURNS")
    if not folder:
        yield
        return
    open(os.path.join(folder, f"ready.{os.getpid()}"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.05)
    with open(os.path.join(folder, "turn"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""JAX loads its CUDA plugin where there is a file /dev/nvidia0. For who looks with
os.path.exists, here is one."""

import os.path

_exists = os.path.exists
os.path.exists = lambda path: path == "/dev/nvidia0" or _exists(path)

#!/usr/bin/env python3
"""hash_names.py NM OBJCOPY FROM TO: gives the simulated runtime's own functions names such as
NVIDIA's have in its static runtime. What it exports keeps its name."""

import hashlib
import subprocess
import sys
import tempfile

nm, objcopy, source, target = sys.argv[1:]
listed = subprocess.run([nm, source], stdout=subprocess.PIPE, text=True, check=True).stdout
names = {line.split()[-1] for line in listed.splitlines()}
with tempfile.NamedTemporaryFile("w", suffix=".names") as file:
    for name in sorted(names):
        if "4lull3sim" in name:
            file.write(f"{name} libcudart_static_{hashlib.sha1(name.encode()).hexdigest()}\n")
    file.flush()
    subprocess.run([objcopy, f"--redefine-syms={file.name}", source, target], check=True)

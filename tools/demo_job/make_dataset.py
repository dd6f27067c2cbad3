#!/usr/bin/env python3
"""Writes a folder of PNG files, the same ones every time.

usage: make_dataset.py FOLDER [COUNT [WIDTH HEIGHT]]

Each is a small random pattern blown up to a photograph's size, so that decoding
a file costs milliseconds, as it does with real pictures.
"""

import random
import sys
from pathlib import Path

from PIL import Image

COARSE = (80, 60)


def main():
    folder = Path(sys.argv[1])
    count, width, height = map(int, (sys.argv[2:] + ["320", "640", "480"][len(sys.argv) - 2:]))
    if len(list(folder.glob("*.png"))) == count:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        noise = random.Random(number).getrandbits(8 * 3 * COARSE[0] * COARSE[1])
        coarse = Image.frombytes("RGB", COARSE, noise.to_bytes(3 * COARSE[0] * COARSE[1], "big"))
        coarse.resize((width, height), Image.BICUBIC).save(
            folder / f"{number:04}.png", compress_level=1)


if __name__ == "__main__":
    main()

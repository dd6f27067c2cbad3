#!/usr/bin/env python3
"""A plain loop on pictures that are opened, cropped, resized and flipped in the main
process: a DataLoader without workers, as is PyTorch's default."""

import io
import random

import numpy
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH, SIDE = 800, 8, 64


class Pictures(Dataset):
    def __init__(self):
        noise = numpy.random.default_rng(0).integers(0, 255, (256, 320, 3), dtype=numpy.uint8)
        file = io.BytesIO()
        Image.fromarray(noise).save(file, "JPEG")
        self.jpeg = file.getvalue()

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        picture = Image.open(io.BytesIO(self.jpeg)).convert("RGB")
        left, top = random.randrange(64), random.randrange(32)
        picture = picture.crop((left, top, left + 224, top + 224))
        picture = picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        if random.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = numpy.asarray(picture, dtype=numpy.float32) / 255
        return torch.from_numpy((pixels - 0.5) / 0.25).permute(2, 0, 1), index % 10


def main():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for pictures, labels in DataLoader(Pictures(), BATCH):
        loss = F.cross_entropy(model(pictures.cuda()), labels.cuda())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()

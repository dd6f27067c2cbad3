#!/usr/bin/env python3
"""Hugging Face's Trainer on a small GPT-2 whose data set makes its tokens in the main
process. Needs transformers and accelerate beside PyTorch."""

import hashlib
import os
import tempfile

import torch
from torch.utils.data import Dataset

os.environ.setdefault("HF_HUB_OFFLINE", "1")
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments  # noqa: E402

STEPS, BATCH, LENGTH = 500, 4, 64


class Words(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        text = b"%d" % index
        tokens = []
        while len(tokens) < LENGTH:
            for _ in range(30):
                text = hashlib.sha256(text).digest()
            tokens.extend(text)
        ids = torch.tensor(tokens[:LENGTH])
        return {"input_ids": ids, "labels": ids}


def main(folder):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=LENGTH, n_embd=64,
                                       n_layer=2, n_head=2))
    arguments = TrainingArguments(
        folder, max_steps=STEPS, per_device_train_batch_size=BATCH, report_to=[],
        logging_steps=10, save_steps=100, dataloader_num_workers=0)
    Trainer(model, arguments, train_dataset=Words()).train()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as its_folder:
        main(its_folder)

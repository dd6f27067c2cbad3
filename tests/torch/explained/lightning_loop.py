#!/usr/bin/env python3
"""Lightning's Trainer on a small network: it logs at each step, and validates twice.
Needs lightning beside PyTorch."""

import logging
import os
import tempfile
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lightning

STEPS, BATCH = 2000, 32


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))

    def training_step(self, batch, index):
        rows, labels = batch
        loss = F.cross_entropy(self.network(rows), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        rows, labels = batch
        self.log("validation_loss", F.cross_entropy(self.network(rows), labels))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main(folder):
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    rows = torch.randn(STEPS * BATCH, 64)
    data = TensorDataset(rows, torch.randint(10, (len(rows),)))
    trainer = lightning.Trainer(
        default_root_dir=folder, max_steps=STEPS, accelerator="gpu", devices=1,
        val_check_interval=STEPS // 2, limit_val_batches=20, log_every_n_steps=10,
        logger=lightning.pytorch.loggers.CSVLogger(folder), enable_progress_bar=False,
        enable_model_summary=False)
    trainer.fit(Classifier(), DataLoader(data, BATCH, shuffle=True), DataLoader(data, BATCH))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as its_folder:
        main(its_folder)

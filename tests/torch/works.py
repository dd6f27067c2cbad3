#!/usr/bin/env python3
"""What of PyTorch works on the simulated device: one line for each feature."""

import io

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda")
FEATURES = []


def feature(function):
    FEATURES.append(function)
    return function


def train(model, *inputs, optimizer=torch.optim.SGD, steps=2, **options):
    model = model.to(DEVICE)
    optimizer = optimizer(model.parameters(), lr=0.1, **options)
    for _ in range(steps):
        loss = model(*inputs).float().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@feature
def device_properties():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    properties = torch.cuda.get_device_properties(0)
    return properties.name, properties.major, properties.multi_processor_count


@feature
def elementwise_and_reductions():
    x = torch.randn(64, 64, device=DEVICE)
    return (x * 2 + 1).exp().sum(0).shape, x.std().item(), x.argmax().item(), x.prod(1).shape


@feature
def shapes_that_depend_on_values():
    x = torch.ones(100, device=DEVICE)
    return x[x > 0].shape, torch.unique(x).shape, torch.nonzero(x).shape


@feature
def sorting_and_indexing():
    x = torch.rand(100, device=DEVICE)
    order = x.argsort()
    return (x.topk(5).values.shape, x[order].cumsum(0).shape,
            x.scatter_add(0, order, x).shape, torch.randperm(9, device=DEVICE).shape)


@feature
def linear_layers():
    return train(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)),
                 torch.randn(16, 32, device=DEVICE), momentum=0.9)


@feature
def products():
    a = torch.randn(4, 8, 16, device=DEVICE)
    return (torch.bmm(a, a.transpose(1, 2)).shape, (a.double() @ a.double().mT).shape,
            (a[0] @ a[0, 0]).shape, torch.dot(a[0, 0], a[0, 1]).item(),
            torch.addmm(torch.zeros(8, device=DEVICE), a[0], a[0].T).shape)


@feature
def convolutions():
    return train(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                               nn.MaxPool2d(2), nn.ConvTranspose2d(8, 4, 3),
                               nn.Conv2d(4, 4, 3, groups=2), nn.AdaptiveAvgPool2d(1)),
                 torch.randn(4, 3, 32, 32, device=DEVICE))


@feature
def convolutions_without_cudnn():
    with torch.backends.cudnn.flags(enabled=False):
        return train(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)),
                     torch.randn(4, 3, 32, 32, device=DEVICE))


@feature
def a_transformer_layer():
    return train(nn.TransformerEncoderLayer(64, 4, batch_first=True),
                 torch.randn(2, 10, 64, device=DEVICE), optimizer=torch.optim.AdamW)


@feature
def attention():
    q = torch.randn(2, 4, 64, 32, device=DEVICE, dtype=torch.float16, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    return q.grad.shape


@feature
def fused_and_foreach_optimizers():
    x = torch.randn(4, 8, device=DEVICE)
    return (train(nn.Linear(8, 8), x, optimizer=torch.optim.AdamW, fused=True),
            train(nn.Linear(8, 8), x, optimizer=torch.optim.Adam, foreach=True))


@feature
def mixed_precision():
    model, scaler = nn.Linear(32, 32).to(DEVICE), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(4, 32, device=DEVICE)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.dtype


@feature
def streams_and_events():
    stream, begin, end = torch.cuda.Stream(), *(torch.cuda.Event(enable_timing=True)
                                                for _ in range(2))
    with torch.cuda.stream(stream):
        begin.record()
        torch.zeros(100, device=DEVICE).add_(1)
        end.record()
    end.synchronize()
    return begin.elapsed_time(end) > 0


@feature
def graphs():
    x, graph = torch.zeros(100, device=DEVICE), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    graph.replay()
    torch.cuda.synchronize()
    return y.shape


@feature
def copies():
    x = torch.arange(4096)
    there = x.pin_memory().to(DEVICE, non_blocking=True)
    return torch.equal(there.cpu(), x), torch.equal(x.to(DEVICE).cpu(), x)


@feature
def data_loader():
    data = TensorDataset(torch.randn(64, 3), torch.arange(64))
    loader = DataLoader(data, 16, num_workers=2, pin_memory=True)
    return sum(x.to(DEVICE, non_blocking=True).shape[0] for x, _ in loader)


@feature
def checkpoints():
    buffer = io.BytesIO()
    torch.save(nn.Linear(4, 4).to(DEVICE).state_dict(), buffer)
    buffer.seek(0)
    return sorted(torch.load(buffer, map_location=DEVICE, weights_only=True))


@feature
def memory_statistics():
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return free < total, torch.cuda.memory_stats()["num_ooms"]


@feature
def running_out_of_memory():
    try:
        torch.empty(1 << 40, device=DEVICE)
    except torch.cuda.OutOfMemoryError:
        return torch.ones(4, device=DEVICE).shape


@feature
def the_profiler():
    model, x = nn.Conv2d(3, 8, 3).to(DEVICE), torch.randn(4, 3, 8, 8, device=DEVICE)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(3):
            model(x).sum().item()
    on_device = [event.name for event in profile.events()
                 if event.device_type == torch.autograd.DeviceType.CUDA]
    return len(on_device), sum("implicit_gemm" in name for name in on_device)


def main():
    for function in FEATURES:
        print(function.__name__, function())


if __name__ == "__main__":
    main()

"""A part of a step as a CUDA graph."""

import torch


def captured(run):
    """(graph, what run() returned when it was captured): after three runs on a stream of their
    own, as PyTorch wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    return graph, result

#!/usr/bin/env python3
"""The same training in PyTorch, for scripts/bench/compare.sh and scripts/gpu_check.sh: one process, or DDP (NCCL on GPUs,
gloo on CPUs) where mpirun, srun or torchrun starts several. Prints one JSON line; its samples_per_s is of the median step
after warm-up.

PyTorch's best honest configuration for these networks: the data on the device, no DataLoader, channels_last, gradients as
views of the buckets, a static graph, buffers not sent. --batch is that of all ranks together."""
import argparse
import inspect
import json
import os
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottleneck(nn.Module):
    """ResNet-50's block, the stride in its 3x3 convolution."""

    def __init__(self, inner, width, stride):
        super().__init__()
        outer = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer))
        self.skip = nn.Identity() if stride == 1 and inner == outer else nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inner, width, stride if block == 0 else 1))
            inner = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(), nn.Linear(512, 10))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


MODELS = {"mlp": (mlp, (1, 28, 28), 10), "lenet": (lenet, (1, 28, 28), 10), "resnet50": (resnet50, (3, 224, 224), 1000)}


def of_launcher(*names, default=0):
    return int(next((os.environ[n] for n in names if n in os.environ), default))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1, help="of each rank, on a CPU")
    options = parser.parse_args()

    rank = of_launcher("OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID")
    world = of_launcher("OMPI_COMM_WORLD_SIZE", "WORLD_SIZE", "SLURM_NTASKS", default=1)
    local = of_launcher("OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK", "SLURM_LOCALID")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    on_gpu = options.device == "cuda"
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    if world > 1:
        for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29541"), ("RANK", rank), ("WORLD_SIZE", world)):
            os.environ.setdefault(name, str(value))
        torch.distributed.init_process_group("nccl" if on_gpu else "gloo")

    make, shape, classes = MODELS[options.model]
    rows = options.batch // world
    samples = max(rows, 4096 if len(shape) == 3 and shape[0] == 1 else 2 * rows)
    images = torch.randn(samples, *shape, device=device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(classes, (samples,), device=device)
    model = make().to(device, memory_format=torch.channels_last)
    parameters = list(model.parameters())
    if world > 1:
        known = inspect.signature(nn.parallel.DistributedDataParallel).parameters  # renamed in PyTorch 2.15
        buffers = {"forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers": False}
        model = nn.parallel.DistributedDataParallel(model, device_ids=[local] if on_gpu else None, **buffers,
                                                    gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, fused=on_gpu or None)

    seconds = []
    for _ in range(options.warmup + options.steps):
        start = time.perf_counter()
        chosen = torch.randint(samples, (rows,), device=device)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = F.cross_entropy(model(images.index_select(0, chosen)), labels.index_select(0, chosen))
        optimizer.zero_grad(set_to_none=world == 1)
        loss.backward()
        optimizer.step()
        loss.item()  # waits for the device, as a trainer does that looks at every loss
        seconds.append(time.perf_counter() - start)
    step = statistics.median(seconds[options.warmup:])
    if rank == 0:
        print(json.dumps({"samples_per_s": round(rows * world / step, 1), "step_ms": round(1000 * step, 3),
                          "model": options.model, "precision": options.precision, "ranks": world, "batch": rows * world,
                          "device": torch.cuda.get_device_name() if on_gpu else "cpu", "torch": torch.__version__}))
    if world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

# What: seconds of a step of ResNet-50 at 224x224 in Lockstep, on one rank and on two, and in PyTorch, in turn, on the same
#       cores, one thread a core. CPU time beside wall time: it says something on a machine that has other work, too.
# Usage: torch_resnet_speed.py PATH_TO_LOCKSTEP [ROUNDS [BATCH]]
# Needs: torch, numpy, mpirun, taskset, and cores 0 and 1.
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from torch_resnet50 import ResNet50

CONFIG = """
data = {{ format = "synthetic", samples = {batch}, test_samples = 0, classes = 4, shape = [224, 224, 3], shuffle = "none" }}
model = {{ name = "resnet50", flavor = "torchvision" }}
batch = {{ size = {batch}, shards = 4 }}
batch_norm = {{ scope = "global", unbiased = true }}
train = {{ steps = 1 }}
optimizer = {{ name = "momentum", lr = 2e-4, weight_decay = 1e-4 }}
"""


def launch(command):
    """Wall and CPU seconds of a whole process with its children."""
    wall, cpu = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.time() - wall, after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime


def lockstep(executable, folder, batch, ranks):
    """Three steps less one: without start-up and saving."""
    mpi = ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] if ranks > 1 else []
    times = {}
    for steps in (1, 3):
        out = tempfile.mkdtemp(dir=folder)
        times[steps] = launch([*mpi, "taskset", "-c", f"0-{ranks - 1}", executable, "train", "-q", "-c", f"{folder}/resnet.toml", "--set",
                               f"train.steps={steps}", "--set", "device.threads=1", "--set", "device.timeout_s=1200", "--out", f"{out}/run"])
    return tuple((more - less) / 2 for more, less in zip(times[3], times[1]))


def torch_steps(cores, batch):
    """In a process of its own: the median of three steps after a first one."""
    import torch

    torch.set_num_threads(cores)
    module = ResNet50(4).to(memory_format=torch.channels_last)
    images = torch.randn(batch, 3, 224, 224).to(memory_format=torch.channels_last)
    labels = torch.arange(batch) % 4
    optimizer = torch.optim.SGD(module.parameters(), 2e-4, 0.9, weight_decay=1e-4)
    times = []
    for _ in range(4):
        wall, cpu = time.time(), time.process_time()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(images), labels).backward()
        optimizer.step()
        times.append((time.time() - wall, time.process_time() - cpu))
    print(*(statistics.median(column) for column in zip(*times[1:])))


def main(executable, rounds=3, batch=8):
    rounds, batch = int(rounds), int(batch)
    seen = {}

    def note(name, wall, cpu):
        seen.setdefault(name, []).append((wall, cpu))
        print(f"{name}, batch {batch}: {1000 * wall:.0f} ms a step, {1000 * cpu:.0f} ms of CPU", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/resnet.toml", "w") as file:
            file.write(CONFIG.format(batch=batch))
        for _ in range(rounds):
            for cores in (1, 2):
                note(f"Lockstep, {cores} rank(s)", *lockstep(executable, folder, batch, cores))
                said = subprocess.run(["taskset", "-c", f"0-{cores - 1}", sys.executable, __file__, "torch", str(cores), str(batch)], check=True,
                                      capture_output=True, text=True).stdout
                note(f"PyTorch, {cores} thread(s)", *map(float, said.split()))
    for name, rows in seen.items():
        wall, cpu = (statistics.median(column) for column in zip(*rows))
        print(f"median of {name}: {1000 * wall:.0f} ms a step, {1000 * cpu:.0f} ms of CPU")


if __name__ == "__main__":
    torch_steps(*map(int, sys.argv[2:])) if sys.argv[1] == "torch" else main(*sys.argv[1:])

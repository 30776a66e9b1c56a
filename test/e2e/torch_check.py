# What: the PyTorch half of torch_test.sh: writes small IDX data, then compares what Lockstep predicts with the same
#       weights in PyTorch modules, loaded under their own names and shapes without any permutation.
# Usage: torch_check.py make FOLDER MODEL | torch_check.py check FOLDER MODEL WEIGHTS PREDICTIONS.csv
# Needs: torch, numpy
import json
import struct
import sys

import numpy as np
import torch

# Height, width and channels all differ, so that a swapped pair cannot pass.
SHAPES = {"mlp": (9, 7), "lenet": (14, 10, 3)}
MEAN, STD = 0.3, 0.35
CLASSES = 6


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(struct.pack(">HBB", 0, 0x08, array.ndim))
        file.write(struct.pack(f">{array.ndim}I", *array.shape))
        file.write(array.tobytes())


def make(folder, model):
    random = np.random.default_rng(7)
    prototypes = random.integers(0, 128, (CLASSES, *SHAPES[model]), dtype=np.uint8)  # so that there is something to learn
    for split, samples in (("train", 90), ("test", 41)):
        labels = np.arange(samples, dtype=np.uint8) % CLASSES
        noise = random.integers(0, 128, (samples, *SHAPES[model]), dtype=np.uint8)
        write_idx(f"{folder}/{split}-images", prototypes[labels] + noise)
        write_idx(f"{folder}/{split}-labels", labels)


def read_images(folder):
    raw = open(f"{folder}/test-images", "rb").read()
    rank = raw[3]
    extents = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    pixels = np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(extents).astype(np.float32)
    return torch.from_numpy((pixels / np.float32(255) - np.float32(MEAN)) / np.float32(STD))


def read_weights(path):
    if path.endswith(".npz"):
        return {name: torch.from_numpy(array) for name, array in np.load(path).items()}
    raw = open(path, "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:end]).items():
        if name == "__metadata__":
            assert entry["format"] == "pt", entry
            continue
        assert entry["dtype"] == "F32", (name, entry)
        first, last = entry["data_offsets"]
        values = np.frombuffer(raw[end + first : end + last], "<f4").reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


class Mlp(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        sizes = [inputs, *hidden, CLASSES]
        for i in range(1, len(sizes)):
            self.add_module(f"fc{i}", torch.nn.Linear(sizes[i - 1], sizes[i]))

    def forward(self, x):
        layers = list(self.children())
        x = x.flatten(1)
        for layer in layers[:-1]:
            x = torch.relu(layer(x))
        return layers[-1](x)


class Lenet(torch.nn.Module):
    def __init__(self, height, width, channels, c1, c2):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, c1, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(c1, c2, 5, padding=2)
        self.fc1 = torch.nn.Linear(c2 * (height // 4) * (width // 4), 512)
        self.fc2 = torch.nn.Linear(512, CLASSES)

    def forward(self, x):
        x = x.permute(0, 3, 1, 2)  # pictures lie as height, width, channels in the file
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def check(folder, model, weights, predictions):
    images = read_images(folder)
    module = Mlp(9 * 7, [33, 17]) if model == "mlp" else Lenet(14, 10, 3, 3, 5)
    module.load_state_dict(read_weights(weights), strict=True)
    module.eval()
    with torch.no_grad():
        logits = module(images).double()
    table = np.loadtxt(predictions, delimiter=",", skiprows=1)
    assert table.shape == (len(images), 3 + CLASSES), table.shape
    probabilities = torch.from_numpy(table[:, 3:])
    worst = (probabilities - torch.softmax(logits, 1)).abs().max().item()
    # Softmax gives logits up to a constant per sample: compare them where each has the mean 0.
    recovered = probabilities.log()
    recovered -= recovered.mean(1, keepdim=True)
    worst_logit = (recovered - (logits - logits.mean(1, keepdim=True))).abs().max().item()
    spread = (logits.max(1).values - logits.min(1).values).max().item()
    print(f"{model}, {weights}: probabilities differ by at most {worst:.2e}, logits by {worst_logit:.2e} (range {spread:.2f})")
    assert worst <= 1e-5, worst
    assert worst_logit <= 1e-5 * max(1.0, spread), worst_logit
    # The test says something only where the network has learned to tell its inputs apart.
    assert spread > 0.5 and probabilities.std(0).max() > 1e-2, spread
    best = logits.topk(2, 1).values
    clear = best[:, 0] - best[:, 1] > 1e-4
    assert (torch.from_numpy(table[:, 2]).long()[clear] == logits.argmax(1)[clear]).all()


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])

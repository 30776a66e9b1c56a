# What: ResNet-50 v1.5 in plain torch.nn under torchvision's names, shapes and initial values (strict loading shows it), and
#       safetensors files in both directions: what a user without torchvision needs to take weights there and back.
# Usage: import it.
# Needs: torch, numpy
import json
import struct

import numpy as np
import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride, stride_first, unlike):
        super().__init__()
        first, second = (stride, 1) if stride_first else (1, stride)
        self.conv1 = nn.Conv2d(inputs, width, 1, stride=first, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=second, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        if unlike:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride=stride, bias=False), nn.BatchNorm2d(4 * width))
        else:
            self.downsample = nn.Identity()

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet50(nn.Module):
    """stride_first: the older form (v1), whose blocks have their stride in the first 1x1 convolution."""

    def __init__(self, classes, stride_first=False):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width, layers = 64 << stage, []
            for i in range(blocks):
                layers.append(Bottleneck(inputs, width, 2 if stage > 0 and i == 0 else 1, stride_first, i == 0))
                inputs = 4 * width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


TYPES = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def read_safetensors(path):
    raw = open(path, "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:end]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        values = np.frombuffer(raw[end + first : end + last], TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        array = tensor.detach().numpy()
        kind = next(kind for kind, dtype in TYPES.items() if dtype == array.dtype)
        bytes_ = array.tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def load(module, tensors):
    """Strictly, but for the counters that Lockstep does not keep."""
    counters = {name: tensor for name, tensor in module.state_dict().items() if name.endswith("num_batches_tracked")}
    module.load_state_dict({**counters, **tensors}, strict=True)

# What: the PyTorch half of torch_resnet_test.sh. `start` writes initial weights; `check` takes the same step in PyTorch on the
#       very pixels that Lockstep trained on, and compares loss, gradients, updated weights, running statistics and
#       predictions. `double` takes it in fp64; with a fault (another rate, another padding) a difference must be found.
# Usage: torch_resnet_check.py start WEIGHTS | check RUN PREDICTIONS.csv WEIGHTS single|double|rate|padding
# Needs: torch, numpy; Pillow, if it is there, is asked what the pixels are. Works in the folder of torch_resnet_data.py.
import json
import pathlib
import sys

import numpy as np
import torch
from torch_resnet50 import ResNet50, load, read_safetensors, write_safetensors

CLASSES, LR, MOMENTUM, DECAY = 4, 2e-4, 0.9, 1e-4
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
# Of the largest element of a tensor. Lockstep's bits are always the same and fp64 has no roundings to speak of, so against
# it gradients have the bound of all else; two results in fp32 may part by the sum of their errors, the larger as batch norm
# makes terms of the sums cancel.
TOLERANCE, GRADIENTS_FP32 = 1e-4, 1e-3
# conv1 alone lies below the max pooling. Of its 1.6 million windows a few have two largest values that one rounding tells
# apart; the gradient then goes to one pixel or to its neighbour.
GRADIENT_CONV1 = 1e-2


def start(path):
    """Statistics and gammas are of no special value, as in a network that has been trained for a while. Betas keep most
    activations off the kink of their relu: there a rounding decides whether a gradient passes, so that in fp32 single
    elements of it are off by per cents, in PyTorch as here, and no comparison of gradients would be worth much."""
    torch.manual_seed(1)
    module = ResNet50(CLASSES)
    ranges = {"weight": (0.5, 1.0), "bias": (3.0, 4.0), "running_mean": (-0.2, 0.2), "running_var": (0.5, 1.5)}
    residual = {**ranges, "weight": (0.1, 0.3), "bias": (1.0, 1.5)}  # added to what is not negative
    for name, norm in module.named_modules():
        if isinstance(norm, torch.nn.BatchNorm2d):
            for kind, (least, largest) in (residual if name.endswith("bn3") else ranges).items():
                getattr(norm, kind).data.uniform_(least, largest)
    write_safetensors(path, module.state_dict())  # with PyTorch's counters, which Lockstep passes over


def pixels(split):
    """A logistic regression that starts at 0 and takes one step of rate 2 on one picture of label 0 becomes minus the picture:
    what the network is fed, bit for bit."""
    pictures = []
    for folder in sorted(pathlib.Path("pixels").glob(f"{split}-*")):
        x = -read_safetensors(folder / "run/model.safetensors")["fc.weight"].numpy().reshape(3, 224, 224)
        raw = np.rint((x.transpose(1, 2, 0).astype(float) * STD + MEAN) * 255).astype(np.uint8)
        normal = (raw.astype(np.float32) / np.float32(255) - MEAN) / STD
        assert np.array_equal(normal.transpose(2, 0, 1), x), f"{folder}: not ((u8 / 255) - mean) / std"
        with_pillow(next((folder / "a").iterdir()), raw)
        pictures.append(torch.from_numpy(x.copy()))
    return torch.stack(pictures)


def with_pillow(file, raw):
    try:
        from PIL import Image
    except ImportError:
        return
    other = np.asarray(Image.open(file).convert("RGB").resize((224, 224), Image.BILINEAR)).astype(int)
    assert abs(raw - other).max() <= 1, f"{file}: pixels differ from Pillow's by up to {abs(raw - other).max()} of 255"


def torch_step(started, images, labels, variant):
    """The module after the step, the loss before it, and its momentum, which is the gradient with the decay in it."""
    module = ResNet50(CLASSES)
    load(module, {name: tensor for name, tensor in started.items() if not name.endswith("num_batches_tracked")})
    module.to(images.dtype)
    if variant == "padding":  # SAME: an odd row and column below and right, as TensorFlow pads
        module.layer3[0].conv2.padding = 0
        module.layer3[0].conv2.register_forward_pre_hook(lambda _, x: torch.nn.functional.pad(x[0], (0, 1, 0, 1)))
    rate = LR / 2 if variant == "rate" else LR
    optimizer = torch.optim.SGD(module.parameters(), rate, MOMENTUM, weight_decay=DECAY)
    loss = torch.nn.functional.cross_entropy(module(images), labels)
    loss.backward()
    optimizer.step()
    momentum = {name: optimizer.state[parameter]["momentum_buffer"] for name, parameter in module.named_parameters()}
    return module.eval(), loss.item(), momentum


def worst(ours, theirs):
    """The largest deviation of an element, over the largest element of its tensor; and the tensor."""
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    return max(((ours[name].double() - tensor.double()).abs().max().item() / tensor.abs().max().item(), name)
               for name, tensor in theirs.items())


def centred(logits):
    return logits - logits.mean(1, keepdim=True)


def check(run, predictions, weights, variant):
    events = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    loss = next(event["loss"] for event in events if event["event"] == "step")
    after = read_safetensors(f"{run}/model.safetensors")
    slots = read_safetensors(f"{run}/checkpoints/step-00000001/optimizer.safetensors")
    table = torch.from_numpy(np.loadtxt(predictions, delimiter=",", skiprows=1))
    assert table[:, 1].long().tolist() == [0, 1, 2, 3, 3], table

    dtype = torch.float64 if variant == "double" else torch.float32
    labels = torch.arange(CLASSES).repeat_interleave(2)
    module, their_loss, momentum = torch_step(read_safetensors(weights), pixels("train").to(dtype), labels, variant)
    state = {name: tensor for name, tensor in module.state_dict().items() if not name.endswith("num_batches_tracked")}
    with torch.no_grad():
        logits = centred(module(pixels("test").to(dtype)))

    gradients = {name.removeprefix("momentum/"): tensor for name, tensor in slots.items()}
    running = lambda tensors: {name: tensor for name, tensor in tensors.items() if "running" in name}
    moved = lambda tensors: {name: tensor for name, tensor in tensors.items() if "running" not in name}
    first = {"conv1.weight": momentum.pop("conv1.weight")}
    fine = True
    for what, (deviation, where), tolerance in (
        ("loss", (abs(loss - their_loss) / their_loss, loss), TOLERANCE),
        ("gradient of conv1", worst({"conv1.weight": gradients.pop("conv1.weight")}, first), GRADIENT_CONV1),
        ("gradients", worst(gradients, momentum), TOLERANCE if variant == "double" else GRADIENTS_FP32),
        ("weights", worst(moved(after), moved(state)), TOLERANCE),
        ("running statistics", worst(running(after), running(state)), TOLERANCE),
        # Softmax gives logits up to a constant a sample: compared is where each has the mean 0.
        ("logits after the step", worst({"fc": centred(table[:, 3:].log())}, {"fc": logits}), TOLERANCE),
    ):
        verdict = "equal" if deviation <= tolerance else "DIFFERENT"
        print(f"{what}: {verdict}, {deviation:.1e} of the largest element ({where})", flush=True)
        fine = fine and deviation <= tolerance
    sys.exit(0 if fine else 4)


if __name__ == "__main__":
    {"start": start, "check": check}[sys.argv[1]](*sys.argv[2:])

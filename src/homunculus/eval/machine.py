"""What a results file says about where its figures come from."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch


def machine(device: str) -> dict[str, object]:
    """Processor, device, threads, versions and commit: COMMIT of the environment, for a copy without its history."""
    mine = Path(_git("rev-parse", "--show-toplevel") or "/", "src", "homunculus").is_dir()  # not a user's repository
    commit = os.environ.get("COMMIT") or (mine and _git("rev-parse", "--short", "HEAD")) or "unknown"
    if mine and "COMMIT" not in os.environ and _git("status", "--porcelain", "--", ":/src", ":/benchmarks"):
        commit += " with changes"
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": commit,
    }


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())

"""The service under load, on this machine alone: requests lost, seconds a request takes, whether memory grows.

python benchmarks/load.py                            # 50 clients for 60 s against /v1/look; results/load_cpu.json
python benchmarks/load.py --path ask --batch-size 1    # questions one by one; compare with 8

Every client sends its next request when the last was answered; after a 429 it waits as long as Retry-After says. All of
them ask about one page, which the service opens once. Rows of another commit or machine in the file are dropped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx

from homunculus.eval.machine import machine
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
SETTING = ("path", "clients", "batch_size", "asked for")  # of a run: another one with the same replaces it
QUESTIONS = [
    f"What is the {what}?" for what in ("total", "date", "customer number", "invoice number", "due date", "name")
]


def memory(pid: int) -> float:
    """Megabytes that a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


async def client(number: int, where: str, image: bytes, path: str, until: float, seen: list[tuple[int, float]]) -> None:
    async with httpx.AsyncClient(timeout=180) as http:
        turn = number
        while time.monotonic() < until:
            question = QUESTIONS[turn % len(QUESTIONS)]
            fields = {"question": f"{question} ({number}, {turn})", "budget": 273}  # none is asked twice
            begun = time.monotonic()
            answer = await http.post(f"{where}/v1/{path}", files={"image": image}, data=fields)
            seen.append((answer.status_code, time.monotonic() - begun))
            if answer.status_code == 429:
                await asyncio.sleep(min(float(answer.headers["retry-after"]), max(0.0, until - time.monotonic())))
            elif answer.status_code == 200:
                said = answer.json()
                assert len(said["tokens"]) == 273 and (path == "look" or said["lines"])
            turn += 1


async def watch(pid: int, used: list[float]) -> None:
    while True:
        await asyncio.sleep(10)
        used.append(memory(pid))


async def load(args: argparse.Namespace, where: str, pid: int) -> dict:
    image = (ROOT / "examples" / "invoice.png").read_bytes()
    async with httpx.AsyncClient(timeout=180) as http:
        await http.post(f"{where}/v1/{args.path}", files={"image": image}, data={"question": QUESTIONS[0]})
    begun, seen, used = time.monotonic(), list[tuple[int, float]](), [memory(pid)]
    until = begun + args.seconds
    watching = asyncio.create_task(watch(pid, used))
    await asyncio.gather(*(client(n, where, image, args.path, until, seen) for n in range(args.clients)))
    spent = time.monotonic() - begun
    watching.cancel()
    good = sorted(seconds for status, seconds in seen if status == 200)
    figures = {"path": args.path, "clients": args.clients, "batch_size": args.batch_size, "seconds": round(spent, 1)}
    figures |= {"answers": len(good), "per_second": len(good) / spent, "statuses": dict(Counter(s for s, _ in seen))}
    figures |= {"p50": statistics.median(good), "p99": good[int(0.99 * (len(good) - 1))], "worst": good[-1]}
    return figures | {"asked for": args.seconds, "memory every 10 s": [*map(round, used), round(memory(pid))]}


@contextmanager
def served(device: str, batch_size: int) -> Iterator[tuple[str, int]]:
    """The service in a process of its own: its address and the process's id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", "--port", str(port), "--device", device, "--batch-size", str(batch_size)]
    call = [sys.executable, "-m", "homunculus", *words]
    server = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}", server.pid
    finally:
        server.terminate()
        server.wait(60)


def is_ready(where: str) -> bool:
    try:
        return httpx.get(f"{where}/healthz").json()["state"] == "ready"
    except httpx.TransportError:
        return False


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", choices=("look", "ask"), default="look")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="results/load_cpu.json, to which this run is added")
    args = parser.parse_args(words)
    begun = time.monotonic()
    with served(args.device, args.batch_size) as (where, pid):
        while not is_ready(where):
            time.sleep(0.2)
        start = time.monotonic() - begun
        figures = asyncio.run(load(args, where, pid)) | {"start": start}
        healthy = is_ready(where)
    out = args.out or ROOT / "results" / f"load_{'cuda' if args.device.startswith('cuda') else 'cpu'}.json"
    here, known = machine(args.device), json.loads(out.read_text()) if out.is_file() else {}
    others = known["rows"] if known.get("machine") == here else []
    rows = [row for row in others if any(row.get(key) != figures[key] for key in SETTING)] + [figures]
    with replacing(out) as unfinished:
        unfinished.write_text(json.dumps({"machine": here, "rows": rows}, indent=1) + "\n")
    print(json.dumps(figures, indent=1))
    print(f"healthy afterwards: {healthy}; wrote {out}")


if __name__ == "__main__":
    main()

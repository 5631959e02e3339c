"""How long after `homunculus serve` was typed the page can be used, and the first answer stands in a real browser.

python benchmarks/first_answer.py        # writes results/first_answer_cpu.json

The service is started anew each time; the browser, which is running already, opens the page as soon as there is one,
loads the example, types a question and waits. Needs Chromium and `pip install playwright`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from playwright import sync_api

from homunculus.eval.machine import machine
from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
QUESTION = "What is the total?"
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def once(browser: sync_api.Browser, port: int) -> dict[str, float | str]:
    """Seconds from the start of the service."""
    begun = time.monotonic()
    words = [sys.executable, "-m", "homunculus", "serve", "--port", str(port)]
    service = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    page = browser.new_page()
    try:
        while True:
            try:
                page.goto(f"http://127.0.0.1:{port}/")
                break
            except sync_api.Error:
                time.sleep(0.05)
        page.locator("#example").click()
        page.locator("#question").fill(QUESTION)
        usable = time.monotonic() - begun
        page.locator("#question").press("Enter")
        answer = page.locator("#answers")
        sync_api.expect(answer).to_contain_text("% sure", timeout=120_000)
        answered = time.monotonic() - begun
        said = answer.inner_text().splitlines()
        return {"usable": usable, "answered": answered, "said": " ".join(said)[:80]}
    finally:
        page.close()
        service.terminate()
        service.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "first_answer_cpu.json")
    args = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        rows = []
        for _ in range(args.runs):
            rows.append(once(browser, port))
            print(rows[-1], flush=True)
        browser.close()
    middle = {name: statistics.median(float(row[name]) for row in rows) for name in ("usable", "answered")}
    with replacing(args.out) as unfinished:
        unfinished.write_text(json.dumps({"machine": machine("cpu"), "median": middle, "runs": rows}, indent=1) + "\n")
    print(f"usable after {middle['usable']:.1f} s, answered after {middle['answered']:.1f} s; wrote {args.out}")


if __name__ == "__main__":
    main()

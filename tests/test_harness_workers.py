"""Workers of the harness: several answer as one does, and end with the one who called them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import batches, timeless
from homunculus.eval.cluster import _each
from homunculus.eval.runner import key_in, read, run


def test_workers_end_with_the_one_who_called_them(eval_data, tmp_path):
    out, noted = tmp_path / "out", tmp_path / "noted"
    noted.mkdir()
    plan = f"batches(Path({str(eval_data)!r}), ['grid/4'], ())"
    call = f"run({plan}, Sleepy(where={str(noted)!r}), Path({str(out)!r}), 2)"
    imports = "from pathlib import Path\nfrom harness import Sleepy, batches\nfrom homunculus.eval.runner import run\n"
    code = f"{imports}if __name__ == '__main__':\n    {call}\n"
    (tmp_path / "caller.py").write_text(code)
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    caller = subprocess.Popen([sys.executable, str(tmp_path / "caller.py")], env=env, stderr=subprocess.DEVNULL)

    def until(done) -> bool:
        deadline = time.monotonic() + 60
        while not done() and time.monotonic() < deadline:
            time.sleep(0.1)
        return done()

    def alive() -> bool:
        return any(Path(f"/proc/{path.name}/cmdline").is_file() for path in noted.iterdir())

    assert until(lambda: len(list(noted.iterdir())) == 2) and alive()
    caller.kill()
    caller.wait()
    assert until(lambda: not alive())


@pytest.mark.parametrize(
    ("has", "workers", "each"), [(2, 1, 1.0), (4, 4, 1.0), (4, 5, 0.5), (1, 12, 0.0833), (0, 3, 0)]
)
def test_all_workers_find_room_on_a_cluster(has, workers, each):
    assert _each(has, workers) == each and (not has or int(1 / each) * has >= workers)


@pytest.mark.timeout(900)  # a cluster takes minutes to start where other work is going on
@pytest.mark.parametrize("ray", [False, True])
def test_several_workers_answer_as_one_does(eval_data, eval_spec, eval_run, ray, tmp_path):
    if ray:
        pytest.importorskip("ray")
    work = batches(eval_data, ["foveated/query/24", "grid/query/24"], ())
    run(work, eval_spec, tmp_path, workers=3 if ray else 2, ray=ray)  # on Ray more than there are cores
    alone = {key_in(row): row for row in read(eval_run / "results.jsonl")}
    rows = read(tmp_path / "results.jsonl")
    assert len(rows) == 24
    assert timeless(rows) == timeless([alone[key_in(row)] for row in rows])

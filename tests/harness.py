"""What several tests of the harness share: settings, plans, models that answer at once."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from homunculus.eval.backends import Prediction, row_of
from homunculus.eval.data import collect
from homunculus.eval.runner import ModelSpec, plan
from homunculus.eval.settings import Setting

SETTINGS = ["foveated/query/24", "grid/query/24", "uniform/query/24", "foveated/oracle/24", "foveated:off=2/query/24"]


def batches(data: Path, names=SETTINGS, regions=("foveated/query/24",), batch_size: int = 5):
    return plan(
        collect([str(data)]),
        [Setting.parse(name) for name in names],
        [Setting.parse(name) for name in regions],
        batch_size,
    )


def timeless(rows: list[dict]) -> list[str]:
    """Rows without what a clock said, in one order."""
    return sorted(json.dumps({key: value for key, value in row.items() if key != "ms"}) for row in rows)


@dataclass(frozen=True)
class Toy(ModelSpec):
    """Answers at once with something that depends on the question alone."""

    def load(self, share: float = 1.0):
        return self

    def fingerprint(self):
        return {"toy": True}

    def answers(self, samples, settings):
        for setting in settings:
            time.sleep(0.002)
            answers = [Prediction(f"{sample.item.qid} {setting}", 0.5, setting.budget, 1.0, None) for sample in samples]
            yield setting, [row_of(sample, setting, one, 1.0) for sample, one in zip(samples, answers, strict=True)]


@dataclass(frozen=True)
class Sleepy(Toy):
    """Leaves its number behind and takes its time."""

    def answers(self, samples, settings):
        (Path(self.where) / str(os.getpid())).touch()
        time.sleep(100)
        yield from super().answers(samples, settings)

"""Where the eye looks against where people looked: every relevance as a map, on every gaze set."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import torch.nn.functional as F
from rich.progress import track
from scipy.ndimage import gaussian_filter

from homunculus.eval.gaze import (
    Array,
    Gaze,
    auc_judd,
    auc_shuffled,
    cc,
    centre_prior,
    elsewhere,
    gaze_map,
    gaze_sets,
    kl,
    nss,
)
from homunculus.eye import Eye, shipped_scout
from homunculus.image import load
from homunculus.relevance import get_relevance, relevance_of
from homunculus.runtime.files import replacing

CENTRE = "centre"
SOURCES = (CENTRE, "information", "saliency", "learned", "opponent", "query")
BLUR = 1 / 24  # of the image's longer side: relevance comes in cells, people's gaze spreads


def measure(folder: Path, out: Path, sources: Sequence[str] = SOURCES, limit: int | None = None) -> Path:
    """Write gaze.json: the mean of every measure for every set and relevance."""
    gazes = gaze_sets(folder)
    by_set: dict[str, list[Gaze]] = defaultdict(list)
    for gaze in gazes:
        if not len(gaze.points) and not any(score > 0 for _, score in gaze.words):
            continue  # nobody is known to have looked
        by_set[gaze.dataset].append(gaze)
    rows = []
    for name, listed in by_set.items():
        found: dict[str, list[dict[str, float]]] = defaultdict(list)
        for gaze in track(listed[:limit], description=name):
            for source, values in maps_of(gaze, sources).items():
                found[source].append(agreement(values, gaze, listed))
        for source, each in found.items():
            keys = dict.fromkeys(chain(*each))
            means = {key: float(np.mean([one[key] for one in each if key in one])) for key in keys}
            rows.append({"set": name, "relevance": source, "n": len(each)} | means)
    with replacing(out / "gaze.json") as unfinished:
        unfinished.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return out / "gaze.json"


def maps_of(gaze: Gaze, sources: Sequence[str]) -> dict[str, Array]:
    """Each relevance of an image, to what people were asked, as a map of its pixels. The question's need one."""
    scene = Eye().scene(load(gaze.image))
    question, scout = gaze.question or "", shipped_scout()
    maps: dict[str, Array] = {CENTRE: centre_prior(gaze.size)} if CENTRE in sources else {}
    for source in sources:
        if source == CENTRE or (source == "query" and not question):
            continue
        model = scout if get_relevance(source).needs_scout(question) else None
        fine = scene.tree.grid(relevance_of(source, scene, [question], model).float(), 0)  # [1, rows, columns]
        smooth = F.interpolate(fine[:, None], gaze.size, mode="bilinear")[0, 0].numpy()
        maps[source] = gaussian_filter(smooth.astype(np.float64), BLUR * max(gaze.size), truncate=3)
    return maps


def agreement(values: Array, gaze: Gaze, all_of_set: Sequence[Gaze]) -> dict[str, float]:
    """All measures of a map that the gaze has the data for."""
    seen = gaze_map(gaze)
    found = {"cc": cc(values, seen), "kl": kl(values, seen)}
    points = [viewer for viewer in gaze.fixations if len(viewer)]
    if not points:
        return found
    fixations = np.concatenate(points)
    found |= {"nss": nss(values, fixations), "auc": auc_judd(values, fixations)}
    others = elsewhere(all_of_set, gaze)
    return found | ({"sauc": auc_shuffled(values, fixations, others)} if len(others) else {})

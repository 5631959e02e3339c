"""The eye: an image and a question in, a glance out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import torch
from torch import Tensor

from homunculus import image as images
from homunculus.allocators import allocate, allocate_forest, check_fixation, get_allocator, get_cut
from homunculus.allocators.shared_budget import check_weights
from homunculus.allocators.wording import per_image
from homunculus.cells import CellTree, Selection
from homunculus.errors import BatchError, ImageError, InputError, TooLargeError, shown, whole_number
from homunculus.fixation import centre, peak, words
from homunculus.giga import GiantGlance, TiledImage, expand_tiles, overview_of, tiled_instead
from homunculus.giga.look import Expansion
from homunculus.glance import Glance, save
from homunculus.relevance import Scene, ScoutFunction, get_relevance, query, relevance_of
from homunculus.segment import Segmenter, list_segmenters
from homunculus.segment import segmenter as segmenter_of

if TYPE_CHECKING:
    from homunculus.image import Source

__all__ = ["Eye", "Fixation", "Glance", "LineFunction", "register_shipped", "save", "shipped_finder", "shipped_scout"]

LineFunction: TypeAlias = Callable[[Scene], Sequence[Tensor]]  # tensors [n, 5], one for each image: see `legibility`
Fixation: TypeAlias = "Sequence[float] | Sequence[Sequence[float]] | Tensor | str | None"


_loaders: dict[str, Callable[[], Any]] = {}


def register_shipped(scout: Callable[[], ScoutFunction], finder: Callable[[], LineFunction]) -> None:
    """Set how the networks that come with the package are loaded; the reader, which has them, does so."""
    _loaders.update(scout=scout, finder=finder)


@cache
def shipped_scout() -> ScoutFunction:
    """The scout that comes with the package, loaded once."""
    return _loaders["scout"]()


@cache
def shipped_finder() -> LineFunction:
    """The line finder that comes with the package, loaded once."""
    return _loaders["finder"]()


def _or_errors(results: list[Any]) -> list[Any]:
    """The results of a list of images, unless some are errors."""
    if any(isinstance(result, Exception) for result in results):
        raise BatchError(results)
    return results


class Eye:
    """Looks at images under a fixed budget of tokens: a rule, a way of knowing what matters, and how many.

    Args:
        allocator, relevance: names from `list_allocators()` and `list_relevances()`.
        budget: how many tokens every look gives.
        cell, levels: of the tree, see `CellTree`.
        scout: finds what was asked for; the learned half of `query`. True is the one that comes with the package,
            loaded when first needed; False does without.
        segmenter: name or function that `atlas` takes its segments from, see `homunculus.segment`.
        finder: function of a scene that gives the lines of its images, for error="legibility"; None is the one that
            comes with the package, loaded when first needed.
        options: of the allocator, see `homunculus allocators NAME`.
    """

    def __init__(
        self,
        allocator: str = "foveated",
        relevance: str = "opponent",
        budget: int = 273,
        *,
        cell: int = 32,
        levels: int | None = None,
        scout: ScoutFunction | bool = True,
        segmenter: str | Segmenter = "felzenszwalb",
        finder: LineFunction | None = None,
        **options: Any,
    ) -> None:
        get_allocator(allocator).check(options)
        get_relevance(relevance)
        CellTree(1, 1, cell, levels)  # wrong ones are named now rather than at the first look
        if isinstance(segmenter, str) and segmenter not in list_segmenters():
            raise InputError(f"there is no segmenter {segmenter!r}; choose one of {', '.join(list_segmenters())}")
        self.by_legibility = isinstance(error := options.get("error"), str) and error == "legibility"
        if finder is not None and ("lines" in options or not self.by_legibility):
            raise InputError("a finder needs error='legibility' and no lines: it is what finds them")
        self.allocator, self.relevance, self.budget = allocator, relevance, whole_number("budget", budget)
        self.cell, self.levels, self.scout, self.segmenter = cell, levels, scout, segmenter
        self.finder, self.options = finder, options

    @overload
    def look(
        self,
        image: list[Source | TiledImage] | tuple[Source | TiledImage, ...],
        question: str | Sequence[str] = "",
        *,
        fixation: Fixation = None,
        fixations: int = 1,
        **loading: Any,
    ) -> list[Glance]: ...

    @overload
    def look(
        self,
        image: Source | TiledImage,
        question: str = "",
        *,
        fixation: Fixation = None,
        fixations: int = 1,
        **loading: Any,
    ) -> Glance: ...

    def look(
        self,
        image: Source | TiledImage | list[Source | TiledImage] | tuple[Source | TiledImage, ...],
        question: str | Sequence[str] = "",
        *,
        fixation: Fixation = None,
        fixations: int = 1,
        **loading: Any,
    ) -> Glance | list[Glance]:
        """Look at an image, or at each of a list; an empty question is a free look.

        `fixation` is (x, y) in pixels, "centre", "words" for the middle of the place that the question names, or None
        for the peak of the relevance there; `fixations` that many peaks. `loading` goes to `homunculus.image.load`:
        page, dpi, max_pixels. A tiled file above max_pixels is looked at tile by tile, see `homunculus.giga`. When some
        of a list fail, the rest is looked at all the same and a BatchError that names them carries the results.
        """
        if not isinstance(image, (list, tuple)):
            return self._look(self._opened(image, loading), question, fixation, fixations)
        questions = per_image(question, len(image))

        def see(opened: Tensor | TiledImage, asked: str) -> Glance:
            return self._look(opened, asked, fixation, fixations)

        return _or_errors(self._see_each(image, questions, loading, see))

    def look_all(
        self,
        images: Sequence[Source],
        questions: str | Sequence[str] = "",
        total: int | None = None,
        *,
        weights: Sequence[float] | None = None,
        fixation: Fixation = None,
        fixations: int = 1,
        **loading: Any,
    ) -> list[Glance]:
        """Look at several images under one budget: those that need many tokens borrow from those that need few.

        `total` tokens are chosen by one cut, see `allocate_forest`; `budget` times the number of images unless told.
        `weights` are a number above 0 for each image: how likely it holds what is asked for. All else is as in `look`;
        when some images fail, the others share the total.
        """
        get_cut(self.allocator)
        asked = per_image(questions, len(images))
        total = whole_number("total", self.budget * len(images) or 1 if total is None else total)
        factors = check_weights(weights, len(images))

        def prepare(pixels: Tensor | TiledImage, question: str) -> tuple[Scene, str, Tensor, Tensor]:
            if isinstance(pixels, TiledImage):
                raise InputError(f"{pixels.path} is read tile by tile and cannot share a budget: look at it alone")
            scene = self.scene(pixels)
            relevance, has_prior = self.weigh(scene, [question]), self._has_spatial_prior(None)
            at = self._fixate(scene, relevance, question, fixation, fixations, has_prior)
            return scene, question, relevance, check_fixation(scene.tree, at, 1)

        seen = self._see_each(images, asked, loading, prepare)
        good = [i for i, each in enumerate(seen) if not isinstance(each, Exception)]
        glances = self._share([seen[i] for i in good], total, [factors[i] for i in good]) if good else []
        for i, glance in zip(good, glances, strict=True):
            seen[i] = glance
        return _or_errors(seen)

    def _share(
        self, seen: list[tuple[Scene, str, Tensor, Tensor]], total: int, weights: Sequence[float]
    ) -> list[Glance]:
        """Glances at scenes, each with its question, relevance [1, N] and fixations [1, F, 2]."""
        scenes, _, relevances, places = map(list, zip(*seen, strict=True))
        known = [self.context(scene, [question]) for scene, question, *_ in seen]
        context = {key: [own[key] for own in known] for key in known[0]}
        if "lines" in context:
            context["lines"] = [lines for (lines,) in context["lines"]]
        trees, options = [scene.tree for scene in scenes], self.options | context
        chosen = allocate_forest(self.allocator, trees, relevances, total, places, weights=weights, **options)
        return [
            Glance(question, self.allocator, selection.boxes.shape[1], selection, at[0], relevance[0], scene)
            for (scene, question, relevance, at), selection in zip(seen, chosen, strict=True)
        ]

    def _see_each(
        self,
        sources: Sequence[Source | TiledImage],
        questions: Sequence[str],
        loading: dict[str, Any],
        see: Callable[[Tensor | TiledImage, str], Any],
    ) -> list[Any]:
        """What `see` makes of the pixels of each image and its question; of those that fail the errors."""
        results: list[Any] = []
        for i, loaded in enumerate(images.load_each(sources, **loading)):  # type: ignore[arg-type]
            try:
                opened = self._tiled(sources[i], loaded, loading)
                results.append(opened if isinstance(opened, Exception) else see(opened, questions[i]))
            except InputError as error:  # such as a fixation outside this image
                name = images.describe_source(sources[i], f"image {i + 1} of {len(sources)}")
                results.append(InputError(f"{name}: {error}"))
            except ImageError as error:  # such as a tile that cannot be decoded
                results.append(error)
        return results

    def _opened(self, source: Source | TiledImage, loading: dict[str, Any]) -> Tensor | TiledImage:
        if isinstance(source, TiledImage):
            if loading:
                raise InputError(f"{', '.join(loading)} would have no effect on a TiledImage: leave it out")
            return source
        try:
            return images.load(source, **loading)
        except TooLargeError as error:
            return tiled_instead(source, error, loading.get("page", 0), streamed=self.allocator == "fractal")

    def _tiled(self, source: Source | TiledImage, loaded: Any, loading: dict[str, Any]) -> Any:
        """What an image of a list is looked at as: itself if it is tiled, or too large for anything else."""
        if isinstance(source, TiledImage):
            return source
        if isinstance(loaded, TooLargeError):
            return tiled_instead(source, loaded, loading.get("page", 0), streamed=self.allocator == "fractal")
        return loaded

    def _look(self, opened: Tensor | TiledImage, question: object, fixation: Fixation, fixations: int) -> Glance:
        if not isinstance(question, str):
            raise InputError(f"a question must be text, got {question!r}")
        if isinstance(opened, TiledImage):
            return self.look_at_tiles(opened, question, fixation, fixations)
        return self.look_at(self.scene(opened), question, fixation, fixations)

    def look_at_tiles(
        self, image: TiledImage, question: str, fixation: Fixation = None, fixations: int = 1
    ) -> GiantGlance:
        """`look` at an image of which only some tiles are decoded: by `fractal`, whatever its size."""
        if self.allocator not in ("fractal", "foveated"):
            raise InputError(f"{self.allocator} needs a whole image, {image.path} is read tile by tile: use fractal")
        unknown = self.options.keys() - ({"ahead", "wave", "fovea"} if self.allocator == "fractal" else set())
        if unknown:
            raise InputError(f"{', '.join(sorted(unknown))} would have no effect on {image.path}, read tile by tile")
        overview = overview_of(image, self.cell, self.levels)
        prior, places = self.weigh(overview.scene, [question]), None
        if fixation is not None or fixations != 1:
            places = self._fixate(overview.scene, prior, question, fixation, fixations, self._has_spatial_prior(None))
            if fixation is None or isinstance(fixation, str):  # in pixels of the overview
                places = torch.minimum(places * 2.0**overview.level, overview.tree.sizes.flip(1)[:, None])
        found = expand_tiles(image, overview, prior, self.budget, places, Expansion(**self.options))
        return GiantGlance(
            question,
            "fractal",
            self.budget,
            found.selection,
            found.fixations,
            prior[0],
            overview.scene,
            found.cells,
            whole=overview.tree,
            each=found.relevance,
            tiles=image.tiles,
        )

    def scene(self, pixels: Tensor) -> Scene:
        """An image uint8 [3, H, W] ready to be looked at; what is worked out about it serves all later looks."""
        return Scene(pixels[None], CellTree(pixels.shape[1], pixels.shape[2], self.cell, self.levels))

    def look_at(self, scene: Scene, question: str, fixation: Fixation = None, fixations: int = 1) -> Glance:
        """`look` at an image that was made ready before."""
        return self.look_for(scene, [question], fixation, fixations)[0]

    def look_for(
        self,
        scene: Scene,
        questions: Sequence[str],
        fixation: Fixation = None,
        fixations: int = 1,
        relevance: Tensor | None = None,
    ) -> list[Glance]:
        """The same for several questions about it; their cells are chosen together where the rule can.

        By a relevance of one's own [Q, N] if there is one.
        """
        rows = [self.weigh(scene, [each]) for each in questions] if relevance is None else list(relevance.split(1))
        has_prior = self._has_spatial_prior(relevance)
        places = [
            self._fixate(scene, row, question, fixation, fixations, has_prior)
            for row, question in zip(rows, questions, strict=True)
        ]
        if not get_allocator(self.allocator).batched or len({place.shape for place in places}) != 1:
            return [self._glances(scene, [q], row, at)[0] for q, row, at in zip(questions, rows, places, strict=True)]
        return self._glances(scene, questions, torch.cat(rows), torch.cat(places))

    def weigh(self, scene: Scene, questions: Sequence[str]) -> Tensor:
        """Relevance of every cell of a scene's images, each to its own question. [B, N]"""
        return relevance_of(self.relevance, scene, list(questions), self._scout(questions[0]))

    def choose(self, scene: Scene, questions: Sequence[str], relevance: Tensor | None = None) -> Selection:
        """Cells of several images of one size, each for its own question, all at once. [B, K]

        By a relevance of one's own [B, N] if there is one.
        """
        if len(questions) != len(scene.pixels):
            raise InputError(f"there are {len(scene.pixels)} images but {len(questions)} questions")
        if not get_allocator(self.allocator).batched:
            raise InputError(f"{self.allocator} chooses for one image at a time; use look")
        has_prior, relevance = (
            self._has_spatial_prior(relevance),
            self.weigh(scene, questions) if relevance is None else relevance,
        )
        places = peak(scene.tree, relevance if has_prior else relevance * query(scene, list(questions)))
        return self._allocate(scene, questions, relevance, places)

    def _glances(self, scene: Scene, questions: Sequence[str], relevance: Tensor, places: Tensor) -> list[Glance]:
        """Glances at one image: relevance [Q, N], places [Q, F, 2]."""
        chosen = self._allocate(scene, questions, relevance, places)
        return [
            Glance(question, self.allocator, self.budget, chosen.row(i), places[i], relevance[i], scene)
            for i, question in enumerate(questions)
        ]

    def _allocate(self, scene: Scene, questions: Sequence[str], relevance: Tensor, places: Tensor) -> Selection:
        options = self.options | self.context(scene, questions)
        return allocate(self.allocator, scene.tree, relevance, self.budget, places, **options)

    def _scout(self, question: str) -> ScoutFunction | None:
        if self.scout is False or not get_relevance(self.relevance).needs_scout(question):
            return None
        return shipped_scout() if self.scout is True else self.scout

    def _has_spatial_prior(self, given: Tensor | None) -> bool:
        """Whether relevance has the places in it that a question names; one that is given has not."""
        return given is None and get_relevance(self.relevance).has_spatial_prior

    def _fixate(
        self, scene: Scene, relevance: Tensor, question: str, fixation: Fixation, count: int, has_prior: bool
    ) -> Tensor:
        if isinstance(fixation, str):
            if fixation not in ("centre", "words"):
                raise InputError(f"fixation must be (x, y) in pixels, 'centre', 'words' or None, got {fixation!r}")
            named = centre(scene.tree) if fixation == "centre" else words(scene.tree, question)
            if named is not None:
                return named
            fixation = None  # no place is named
        if fixation is None:
            return peak(scene.tree, relevance if has_prior else relevance * query(scene, [question]), count)
        try:
            array = np.ascontiguousarray(fixation) if isinstance(fixation, np.ndarray) else fixation
            points = torch.as_tensor(array, dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            points = torch.empty(0)
        if points.ndim not in (1, 2) or points.shape[-1] != 2:
            raise InputError(f"fixation must be (x, y) in pixels or a list of such, got {shown(fixation)}")
        return points.reshape(1, -1, 2).to(relevance.device)

    def _segments(self, scene: Scene) -> Tensor:
        """Made once for all questions about an image."""
        if self.segmenter not in scene.segments:
            scene.segments[self.segmenter] = torch.as_tensor(segmenter_of(self.segmenter)(scene.pixels[0]))
        return scene.segments[self.segmenter]

    def _lines(self, scene: Scene) -> list[Tensor]:
        """Found once for all questions about the images."""
        finder = shipped_finder() if self.finder is None else self.finder
        if finder not in scene.lines:
            scene.lines[finder] = list(finder(scene))
        return scene.lines[finder]

    def context(self, scene: Scene, questions: Sequence[str]) -> dict[str, Any]:
        """What the rule needs beyond relevance, if the user has not given it: only what it takes is made.

        The scene holds an image for each question, or one for all.
        """
        sources: dict[str, Callable[[], Any]] = {
            "error": lambda: scene.lost.expand(len(questions), -1),
            "energy": lambda: scene.lost_along().expand(len(questions), -1, -1),
            "lines": lambda: self._lines(scene),
            "question": lambda: questions[0],
            "segments": lambda: [self._segments(scene)],
        }
        # by legibility, the tensor `error` is what counts once all print is legible
        given = self.options.keys() - {"error"} if self.by_legibility else self.options.keys() | {"lines"}
        return {name: sources[name]() for name in sorted(get_allocator(self.allocator).context - given)}

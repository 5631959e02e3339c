"""The two ways in which input can be wrong. Both carry one sentence that says what to do."""


class InputError(ValueError):
    """A value that cannot be used: its message names the value and what would be right."""


class ImageError(OSError):
    """An image that cannot be read: its message names the file and why."""


class BatchError(ImageError):
    """Some images of a list failed: `results` holds what the others gave, and in their places the errors."""

    def __init__(self, results: list[object]) -> None:
        failed = [result for result in results if isinstance(result, (ImageError, InputError))]
        reasons = "; ".join(str(error) for error in failed)
        super().__init__(f"{len(failed)} of {len(results)} images failed, the others are in `.results`: {reasons}")
        self.results = results

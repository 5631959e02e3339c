"""The two ways in which input can be wrong. Both carry one sentence that says what to do."""


class InputError(ValueError):
    """A value that cannot be used: its message names the value and what would be right."""


class ImageError(OSError):
    """An image that cannot be read: its message names the file and why."""

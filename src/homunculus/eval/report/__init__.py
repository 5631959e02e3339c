"""The results of a run as a page: scores, verdict, expectations, plots."""

from homunculus.eval.report.writer import write

__all__ = ["write"]

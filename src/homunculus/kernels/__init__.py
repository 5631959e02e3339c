"""Triton kernels, each with a plain torch twin that runs where there is no GPU or no Triton."""

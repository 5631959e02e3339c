"""Kernels for GPUs, each with a plain torch twin that runs where there is none."""

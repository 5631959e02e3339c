"""Mechanisms that several folders use, each once: CUDA graphs, atomic files."""

"""Mechanisms that several folders use, each once: attention capture, decoding, CUDA graphs, a cache, atomic files."""

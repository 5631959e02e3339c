"""Relevance."""

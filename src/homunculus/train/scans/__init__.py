"""Scanned pages of the data folders: pixels, text lines, questions, and where they lie on a canvas."""

"""Synthetic documents: laid out in Python, drawn and degraded on the device."""

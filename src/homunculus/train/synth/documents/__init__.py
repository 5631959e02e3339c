"""Families of synthetic documents; every kind is a function that writes one page with a `Pen`."""

"""Measuring this machine: operator curves, collectives, and the files that hold them."""

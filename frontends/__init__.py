"""Frontends: model files and modules become a neutral ``Model``.

Each frontend imports its framework inside its own functions; importing this package
imports none.
"""

"""Schedules on a real engine: worker counts drive elastic torch jobs on Ray (extras ``ray``, ``torch``).

``training`` is what a job computes, whatever its number of workers; ``worker`` one process of it; ``group`` the
workers of a job, ``engine`` those of all; ``running`` asks the scheduler slot by slot. Importing this package
imports neither Ray nor torch.
"""

"""The C library's allocator, told to keep its memory: page faults are no property of a kernel.

glibc gives freed memory back to the system by thresholds that depend on what the process did before. A step that
gets its memory anew pays a page fault every 4 KiB, which on a virtual machine can be a third of its time; the same
step in a process with another past pays none. Both sides of a comparison need the same setting.
"""

from __future__ import annotations

import ctypes
import platform

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_TRIM_BYTES, _MMAP_BYTES = (1 << 31) - 1, 1 << 25  # the largest that mallopt takes on 64-bit systems

KEPT = "memory kept by the allocator (as under MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_MMAP_THRESHOLD_=33554432)"
"""How the setting is said in files and reports."""


def keep_memory() -> bool:
    """Let this process keep what it frees; False where the C library is not glibc, which has no such setting."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES) and libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES))

"""Gives mlx's Linux CPU build a fast BLAS. `preload` must run before anything imports mlx.

The mlx-cpu wheel carries reference BLAS (1.6 GFLOP/s measured, against 34 for OpenBLAS): loading
OpenBLAS with global symbols first makes the wheel's calls resolve to it (prefill 10 -> 70 tok/s).
On other systems nothing is touched: Apple Silicon has its own kernels. Knows nothing of mlx itself.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys


def preload() -> bool:
    """-> whether OpenBLAS is in place. A machine without it works, slowly."""
    if sys.platform != "linux":
        return False
    assert "mlx.core" not in sys.modules, "mlx has already bound its BLAS"
    # OpenBLAS threads spin while they wait, which on busy cores costs more than they bring.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in ("libopenblas.so.0", ctypes.util.find_library("openblas")):
        if name is not None and _load_globally(name):
            return True
    return False


def _load_globally(name: str) -> bool:
    try:
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True

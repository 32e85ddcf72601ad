"""Gives mlx's Linux CPU build a fast BLAS. `preload` must run before anything imports mlx.

The mlx-cpu wheel carries reference BLAS (1.6 GFLOP/s measured, against 34 for OpenBLAS): loading
OpenBLAS with global symbols first makes the wheel's calls resolve to it (prefill 10 -> 70 tok/s).
On other systems nothing is touched: Apple Silicon has its own kernels. Knows nothing of mlx itself.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path


def preload() -> bool:
    """-> whether OpenBLAS is in place. A machine without it works, slowly."""
    if sys.platform != "linux":
        return False
    assert "mlx.core" not in sys.modules, "mlx has already bound its BLAS"
    # OpenBLAS threads spin while they wait, which on busy cores costs more than they bring.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Debian's package; where the loader does not know it by name, its own folder.
    unlisted = sorted(Path("/usr/lib").glob("*/openblas-pthread/libopenblas.so.0"))
    return any(_load_globally(str(name)) for name in ("libopenblas.so.0", *unlisted))


def _load_globally(name: str) -> bool:
    try:
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True

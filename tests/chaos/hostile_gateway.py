"""`plait`, but its workers are those of `hostile_worker`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from plait.cli import main
from plait.engines import spawn

if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])  # where workers find this package
    spawn.WORKER_MODULE = "tests.chaos.hostile_worker"
    sys.exit(main())

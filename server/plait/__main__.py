"""`python -m plait` is the `plait` command.

An interruption while its modules are imported, which may take seconds, is none of a traceback.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command of `sys.argv`; returns its exit code (see `exits`)."""
    try:
        # As Ctrl-C, until the command knows what the signal means to it.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from plait.cli import main as command

        return command()
    except KeyboardInterrupt:
        sys.stderr.write("plait: interrupted; nothing half-made was left behind.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())

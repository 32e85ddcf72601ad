#!/usr/bin/env python3
"""Container entry: make a token on the first start, then become `plait serve`.

Plait refuses to listen beyond loopback without a token, and a container must. The token is kept in
the model volume (mode 600), so it survives restarts; it is printed once and never on argv. It is
there complete or not at all: a file left empty by a full disk or a power cut counts as none.
`PLAIT_TOKEN`, where the operator sets it, is used as it is and nothing is made.
"""

import os
import secrets
import sys
from pathlib import Path


def stored_token(file: Path) -> str:
    """The token in `file`, made and printed first if there is none."""
    token = file.read_text().strip() if file.exists() else ""
    if not token:
        token = secrets.token_urlsafe(32)
        write_private(file, token + "\n")
        print(f"Plait made this token; clients need it, and it is shown once: {token}", flush=True)
    return token


def write_private(file: Path, text: str) -> None:
    """Put `text` in `file` in one step, readable by its owner only."""
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)  # of a start that was cut off, perhaps with another mode
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(descriptor)
    new.replace(file)


def main() -> None:
    if not os.environ.get("PLAIT_TOKEN"):
        os.environ["PLAIT_TOKEN"] = stored_token(Path(os.environ["PLAIT_HOME"]) / "token")
    command = ["plait", "serve", "--host", "0.0.0.0", "--no-open", *sys.argv[1:]]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

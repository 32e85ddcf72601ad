#!/usr/bin/env python3
"""Container entry: make a token on the first start, then become `plait serve`.

Plait refuses to listen beyond loopback without a token, and a container must. The token is kept in
the model volume (mode 600), so it survives restarts; it is printed once and never on argv.
`PLAIT_TOKEN`, where the operator sets it, is used as it is and nothing is made.
"""

import os
import secrets
import sys
from pathlib import Path


def stored_token(file: Path) -> str:
    """The token in `file`, made and printed first if there is none."""
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return file.read_text().strip()
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(token + "\n")
    print(f"Plait made this token; clients need it, and it is shown once: {token}", flush=True)
    return token


def main() -> None:
    if not os.environ.get("PLAIT_TOKEN"):
        os.environ["PLAIT_TOKEN"] = stored_token(Path(os.environ["PLAIT_HOME"]) / "token")
    command = ["plait", "serve", "--host", "0.0.0.0", "--no-open", *sys.argv[1:]]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

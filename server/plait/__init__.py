"""Plait: one WebSocket, many cancellable streams of local inference.

The package is layered (see `pyproject.toml`, import-linter): `cli` > `app` > `http` > `sessions` >
`scheduling` > `engines` > `wire` > leaves. Nothing here is imported by merely importing `plait`.
"""

__version__ = "0.1.0"

"""The declared apps: what each may do, and the account all its connections share.

Built once, from the configuration and the models that are served. Without declared apps, or with a
token of `tokens`, a connection belongs to no app and may do everything.
Does NOT know: tokens, HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from plait.config_tables import METHODS, AppTable
from plait.scheduling.routing import Models
from plait.sessions.caller import AppAccount, Caller

log = structlog.get_logger("plait.apps")


@dataclass(frozen=True, slots=True, eq=False)
class App:
    """`capabilities` are those it really has here: of methods only what a model is there for."""

    name: str
    capabilities: tuple[str, ...]
    models: Models
    account: AppAccount

    @classmethod
    def declared(cls, name: str, table: AppTable, models: Models) -> App:
        view = models.restricted(table.capabilities, table.models)
        methods = view.describe()
        beyond = (right for right in table.capabilities if right not in METHODS)
        account = AppAccount(table.max_streams, table.opens_per_second)
        return cls(name, (*methods, *dict.fromkeys(beyond)), view, account)


class Apps:
    """By name, as configured."""

    def __init__(self, tables: Mapping[str, AppTable], models: Models) -> None:
        self._models = models
        self.by_name = {name: App.declared(name, tables[name], models) for name in tables}
        served = {model for info in models.describe().values() for model in info.models}
        for name, table in tables.items():
            if unknown := sorted(set(table.models) - served):
                log.warning("app.unknown_models", app=name, models=unknown, served=sorted(served))

    def caller(self, app: str | None, connection: str) -> Caller:
        """Whose connection of that name is; None: no declared app's."""
        if app is None:
            return Caller.anonymous(connection, self._models)
        known = self.by_name[app]
        return Caller(app, known.models, known.capabilities, known.account, app)

    def may(self, app: str | None, capability: str) -> bool:
        return app is None or capability in self.by_name[app].capabilities

"""Which offer serves a method and a model name: the allow-list of what a client may ask for.

Names come from configuration. A name that is not here reaches no disk and no network.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from plait.errors import ModelNotFound, UnsupportedMethod
from plait.scheduling.offer import Offer
from plait.wire.messages import MethodInfo


@dataclass(frozen=True, slots=True)
class Models:
    """The configured models per method; the only names a client may use."""

    by_method: Mapping[str, Mapping[str, Offer]]

    def resolve(self, method: str, name: str | None) -> Offer:
        """The offer of a model; None means the method's default (the first configured).

        Raises UnsupportedMethod when no model serves the method, ModelNotFound for other names.
        """
        models = self.by_method.get(method, {})
        if not models:
            offered = ", ".join(self.describe())
            raise UnsupportedMethod(
                f"this server offers no {method}; it offers: {offered}", param="method"
            )
        if name is None:
            return next(iter(models.values()))
        if name not in models:
            known = ", ".join(models)
            raise ModelNotFound(f"no such model for {method}; available: {known}", param="model")
        return models[name]

    def describe(self) -> dict[str, MethodInfo]:
        """For `welcome`. Voices and languages are those of all the method's models, the default's
        first."""
        return {
            method: MethodInfo(
                list(offers),
                _all(offer.voices for offer in offers.values()),
                _all(offer.languages for offer in offers.values()),
            )
            for method, offers in self.by_method.items()
            if offers
        }


def _all(names: Iterable[Iterable[str]]) -> list[str] | None:
    return list(dict.fromkeys(itertools.chain.from_iterable(names))) or None

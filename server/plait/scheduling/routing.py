"""Which offer serves a method and a model name: the allow-list of what a client may ask for.

Names come from configuration. A name that is not here reaches no disk and no network. Of an app
that may not use everything there is a restricted view; to it a model it may not use does not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from plait.errors import CapabilityDenied, ModelNotFound, UnsupportedMethod
from plait.scheduling.offer import Offer
from plait.wire.messages import MethodInfo


@dataclass(frozen=True, slots=True)
class Models:
    """The configured models per method; the only names a client may use.

    `denied`: methods that this server offers and this view does not.
    """

    by_method: Mapping[str, Mapping[str, Offer]]
    denied: frozenset[str] = frozenset()

    def restricted(self, methods: Collection[str], names: Collection[str]) -> Models:
        """What may be used of it by somebody who may use these methods and, where `names` are
        given, these models only. A method that keeps no model is denied."""
        kept: dict[str, Mapping[str, Offer]] = {}
        for method, offers in self.by_method.items():
            if method in methods:
                kept[method] = {name: offers[name] for name in offers if not names or name in names}
        view = Models(kept)
        return Models(kept, frozenset(self.describe().keys() - view.describe().keys()))

    def resolve(self, method: str, name: str | None) -> Offer:
        """The offer of a model; None means the method's default (the first configured).

        Raises UnsupportedMethod when no model serves the method, CapabilityDenied when one does
        but not here, ModelNotFound for other names.
        """
        if method in self.denied:
            raise CapabilityDenied(
                f"{method}: this app lacks the capability {method}, or may use none of its models."
                " Use a token of an app that may, or add it to the app's capabilities or models.",
                param="method",
                data={"capability": method},
            )
        models = self.by_method.get(method, {})
        if not models:
            offered = ", ".join(self.describe()) or "nothing"
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

"""What a declared app may do: exactly what it was given of what is there."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from hypothesis import given, strategies as st

from plait.access.apps import Apps
from plait.config_tables import CAPABILITIES, METHODS, AppTable, Capability
from plait.errors import CapabilityDenied, ModelNotFound, PlaitError, UnsupportedMethod
from plait.metrics import Metrics
from plait.scheduling.offer import Offer
from plait.scheduling.routing import Models
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy

POLICY = SchedulerPolicy()
METRICS = Metrics()
SERVED = {"chat": ("small", "large"), "transcribe": ("ears",), "synthesize": ("voice",)}


def models() -> Models:
    return Models(
        {
            method: {name: Offer(Scheduler(name, METRICS, POLICY, method=method)) for name in names}
            for method, names in SERVED.items()
        }
    )


def resolved(apps: Apps, app: str | None, method: str, name: str | None) -> str:
    """The model, or the code of the refusal."""
    try:
        return apps.caller(app, "1-a").models.resolve(method, name).scheduler.model
    except PlaitError as error:
        return error.code


def test_without_apps_a_caller_may_do_everything_in_its_own_name() -> None:
    caller = Apps({}, models()).caller(None, "1-a")
    assert caller.capabilities == ("chat", "transcribe", "synthesize", "metrics", "admin")
    assert (caller.owner, caller.app) == ("1-a", None)


def test_connections_of_an_app_share_its_name_and_its_account() -> None:
    apps = Apps({"notes": AppTable()}, models())
    one, two = apps.caller("notes", "1-a"), apps.caller("notes", "2-b")
    assert one.owner == two.owner == one.app == "notes"
    assert one.account is two.account


def test_a_method_without_an_allowed_model_is_no_capability() -> None:
    apps = Apps({"notes": AppTable(models=("large", "ears"))}, models())
    caller = apps.caller("notes", "1-a")
    assert caller.capabilities == ("chat", "transcribe")
    assert caller.models.describe()["chat"].models == ["large"]
    assert resolved(apps, "notes", "synthesize", None) == "capability_denied"


def test_the_first_allowed_model_is_the_default() -> None:
    apps = Apps({"notes": AppTable(models=("large",))}, models())
    assert resolved(apps, "notes", "chat", None) == "large"


def test_what_is_denied_names_the_capability_and_what_is_not_offered_does_not() -> None:
    view = Apps({"notes": AppTable(capabilities=("chat",))}, models()).caller("notes", "1").models
    with pytest.raises(CapabilityDenied) as denied:
        view.resolve("transcribe", "ears")
    assert denied.value.data == {"capability": "transcribe"}
    with pytest.raises(UnsupportedMethod):
        view.resolve("embed", None)


def test_a_model_of_others_reads_like_one_that_does_not_exist() -> None:
    view = Apps({"notes": AppTable(models=("small",))}, models()).caller("notes", "1-a").models
    refusals = []
    for name in ("large", "nonsense", "../../etc/passwd"):
        with pytest.raises(ModelNotFound) as refused:
            view.resolve("chat", name)
        refusals.append(refused.value.message)
    assert len(set(refusals)) == 1
    assert "large" not in refusals[0]


@given(
    rights=st.lists(st.sampled_from(CAPABILITIES), unique=True),
    names=st.lists(st.sampled_from(["small", "large", "ears", "voice", "gone"]), unique=True),
)
def test_an_app_never_gets_more_and_never_less_than_its_rights(
    rights: list[Capability], names: list[str]
) -> None:
    apps = Apps({"a": AppTable(capabilities=tuple(rights), models=tuple(names))}, models())
    caller = apps.caller("a", "1-a")
    for method, name in product(METHODS, ["small", "large", "ears", "voice", "gone"]):
        there = name in SERVED.get(method, ())
        allowed = there and method in rights and (not names or name in names)
        assert (resolved(apps, "a", method, name) == name) == allowed
    for right in CAPABILITIES:
        assert apps.may("a", right) == (right in caller.capabilities)
        assert right in rights or not apps.may("a", right)
    assert msgspec.json.encode(caller.models.describe())

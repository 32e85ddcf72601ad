"""Which models a configuration asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.config import Config, ConfigError
from plait.config_tables import ModelTable
from plait.configured import wanted_models

ALL_SCRIPTED = Config(
    chat_engine="scripted",
    speech_engine="scripted",
    transcribe_engine="scripted",
    embed_engine="scripted",
)


def test_every_method_has_its_default_first() -> None:
    table = ModelTable("chat", "./other.gguf")

    wanted = wanted_models(replace(ALL_SCRIPTED, models=(table,)))

    assert [(w.method, w.model) for w in wanted][:2] == [
        ("chat", "smollm2-135m-instruct"),
        ("chat", "./other.gguf"),
    ]
    assert [w.method for w in wanted] == ["chat", "chat", "transcribe", "synthesize", "embed"]


def test_a_method_that_is_off_is_left_out_but_for_its_tables() -> None:
    table = ModelTable("embed", "./vectors")

    wanted = wanted_models(replace(ALL_SCRIPTED, embed_engine="off", models=(table,)))

    assert [(w.model, w.engine) for w in wanted if w.method == "embed"] == [("./vectors", "onnx")]


def test_auto_is_resolved_and_makes_a_model_optional() -> None:
    wanted = wanted_models(replace(ALL_SCRIPTED, transcribe_engine="auto"))

    (transcribe,) = [w for w in wanted if w.method == "transcribe"]
    assert (transcribe.engine, transcribe.optional) == ("whisper", True)


def test_a_table_overrides_the_settings_of_its_method_only() -> None:
    table = ModelTable("synthesize", "./voice", slots=1, preload=True)

    (wanted,) = [
        w for w in wanted_models(replace(ALL_SCRIPTED, models=(table,))) if w.model == "./voice"
    ]

    assert (wanted.settings.speech_slots, wanted.settings.slots, wanted.preload) == (1, 4, True)


def test_an_engine_of_another_method_is_a_mistake() -> None:
    table = ModelTable("embed", "./vectors", engine="llamacpp")

    with pytest.raises(ConfigError, match="no engine 'llamacpp' for embed"):
        wanted_models(replace(ALL_SCRIPTED, models=(table,)))

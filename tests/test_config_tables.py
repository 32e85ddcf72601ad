"""The tables of plait.toml: what they mean, and that every mistake names its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.config import ConfigError
from plait.config_sources import load_config
from plait.config_tables import METHODS

MODEL = '[[models]]\nmethod = "chat"\nmodel = "hf:org/other"\n'


def write(directory: Path, text: str) -> Path:
    file = directory / "plait.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_models_and_apps_are_read_beside_flat_settings(tmp_path: Path) -> None:
    file = write(tmp_path, f"slots = 2\n{MODEL}slots = 1\n[apps.notes]\nmax_streams = 3\n")

    config = load_config(file, {})

    assert (config.slots, config.models[0].slots, config.apps["notes"].max_streams) == (2, 1, 3)


def test_an_app_may_by_default_use_every_method_and_nothing_else(tmp_path: Path) -> None:
    app = load_config(write(tmp_path, "[apps.notes]\n"), {}).apps["notes"]

    assert app.capabilities == METHODS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MODEL + "slot = 1\n", "unknown key 'slot'"),
        (MODEL + 'slots = "two"\n', r"\[\[models\]\] number 1 .*slots"),
        ('[[models]]\nmethod = "sing"\nmodel = "x"\n', "method"),
        ("models = 3\n", r"write \[\[models\]\]"),
        ("apps = 3\n", r"write \[apps.NAME\]"),
        ("[apps.Notes]\n", "begins"),
        ('[apps.notes]\ncapabilities = ["fly"]\n', r"\[apps.notes\].*capabilities"),
        ('[apps.notes]\ntoken_hashes = ["secret"]\n', "plait token create notes"),
        (
            '[apps.notes]\norigins = ["notes.example"]\n',
            r"origins of \[apps.notes\].*scheme://host",
        ),
    ],
)
def test_a_mistake_in_a_table_names_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config(write(tmp_path, text), {})


def test_a_wrong_token_hash_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, '[apps.notes]\ntoken_hashes = ["my-secret"]\n'), {})

    assert "my-secret" not in str(caught.value)


def test_declared_apps_let_the_server_leave_loopback(tmp_path: Path) -> None:
    file = write(tmp_path, 'host = "0.0.0.0"\n[apps.notes]\n')

    assert load_config(file, {}).host == "0.0.0.0"

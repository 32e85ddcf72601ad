"""Numbers, money and addresses in the other languages."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from plait.speech.normalisation import script_of

SAID = [
    ("es", "1.234,56 €", "mil doscientos treinta y cuatro euros con cincuenta y seis"),
    ("es", "3,5 kg y 50 %", "tres coma cinco kilos y cincuenta por ciento"),
    ("es", "hola@casa.es", "hola arroba casa punto E S"),
    ("fr", "1 234,5 km", "mille deux cent trente-quatre virgule cinq kilomètres"),
    ("fr", "à 15h30", "à quinze heures trente"),
    ("fr", "10-20 %", "dix à vingt pour cent"),
    ("it", "12 libri, -5 °C", "dodici libri, meno cinque gradi"),
    ("pt-br", "R$ 10,50", "dez reais e cinquenta"),
    ("hi", "₹500", "500 रुपये"),
    ("hi", "नमस्ते Привет", "नमस्ते"),
    ("ja", "1,234.5円", "1234点5円"),
    ("ja", "10:30に", "10時30分に"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "written", "said"), SAID)
def test_what_is_written_is_said(language: str, written: str, said: str) -> None:
    assert script_of(written, language).text.strip() == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2024年3月14日", "二零二四年三月十四日"),
        ("3.14元", "三点一四元"),
        ("50%", "百分之五十"),
        ("€5", "五欧元"),
        ("10:30", "十点三十分"),
    ],
)
def test_chinese_numbers_are_written_out(written: str, said: str) -> None:
    pytest.importorskip("cn2an")

    assert script_of(written, "zh").text == said


@given(st.text(max_size=60), st.sampled_from(["es", "fr", "it", "pt-br", "hi", "ja"]))
def test_no_text_breaks_the_rules(text: str, language: str) -> None:
    script = script_of(text, language)

    assert script.starts == sorted(script.starts)

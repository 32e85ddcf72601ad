"""Rules for Chinese and Japanese: numbers, which are written in characters to be read.

Chinese numbers, dates and percentages by cn2an; Japanese ones are read by the pronouncer, which
needs them without separators.
"""

# ruff: noqa: RUF001 -- full-width signs
from __future__ import annotations

import re

from plait.speech.rewriting import Rule, rule

_ZH_DIGITS = "零一二三四五六七八九"
_ZH_CURRENCIES = {"￥": "元", "¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
_ZH_UNITS = {
    "km/h": "公里每小时", "km": "公里", "kg": "公斤", "cm": "厘米", "mm": "毫米", "m": "米",
    "g": "克", "mg": "毫克", "ml": "毫升", "°C": "摄氏度", "℃": "摄氏度", "GB": "吉字节",
    "MB": "兆字节", "ms": "毫秒", "min": "分钟",
}  # fmt: skip
_JA_CURRENCIES = {"￥": "円", "¥": "円", "$": "ドル", "€": "ユーロ", "£": "ポンド"}
_JA_UNITS = {
    "km/h": "キロ毎時", "km": "キロメートル", "kg": "キログラム", "cm": "センチメートル",
    "mm": "ミリメートル", "m": "メートル", "g": "グラム", "ml": "ミリリットル", "°C": "度",
    "℃": "度", "GB": "ギガバイト", "MB": "メガバイト", "%": "パーセント", "％": "パーセント",
}  # fmt: skip
_N = r"(?P<n>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_MINUTE = r"(?P<m>[0-5]\d)(?!\d)"
_LONG = 16
_LEFT_OVER = r"[^\w\s;:,.!?—…\"()“”'、。，．！？：；「」『』（）《》【】〈〉・-]|[_²³¹⁰⁴-₉½-¾⅐-⅞]"


def chinese() -> list[Rule]:
    units = "|".join(re.escape(unit) for unit in _ZH_UNITS)
    return [
        rule(r"\d{2,4}年(?:\d{1,2}月)?(?:\d{1,2}[日号])?", lambda m: _transformed(m[0])),
        rule(r"\d{1,2}月\d{1,2}[日号]", lambda m: _transformed(m[0])),
        rule(rf"(?P<sign>[￥¥$€£])\s?{_N}", lambda m: _zh(m["n"]) + _ZH_CURRENCIES[m["sign"]]),
        rule(rf"{_N}\s?[%％]", lambda m: "百分之" + _zh(m["n"])),
        rule(rf"{_N}\s?(?P<u>{units})(?![A-Za-z])", lambda m: _zh(m["n"]) + _ZH_UNITS[m["u"]]),
        rule(rf"(?P<h>\d{{1,2}})[:：]{_MINUTE}", lambda m: f"{_zh(m['h'])}点{_zh(m['m'])}分"),
        rule(rf"(?<![\w.])[-−]{_N}", lambda m: "负" + _zh(m["n"])),
        rule(_N, lambda m: _zh(m["n"])),
        rule(r"〇", "零"),
        rule(_LEFT_OVER, " "),
    ]  # fmt: skip


def japanese() -> list[Rule]:
    units = "|".join(re.escape(unit) for unit in _JA_UNITS)
    return [
        rule(rf"(?P<h>\d{{1,2}})[:：]{_MINUTE}", lambda m: f"{int(m['h'])}時{int(m['m'])}分"),
        rule(rf"(?P<sign>[￥¥$€£])\s?{_N}", lambda m: _ja(m["n"]) + _JA_CURRENCIES[m["sign"]]),
        rule(rf"{_N}\s?(?P<u>{units})(?![A-Za-z])", lambda m: _ja(m["n"]) + _JA_UNITS[m["u"]]),
        rule(rf"(?<![\w.])[-−]{_N}", lambda m: "マイナス" + _ja(m["n"])),
        rule(_N, lambda m: _ja(m["n"])),
        rule(_LEFT_OVER, " "),
    ]  # fmt: skip


def _zh(written: str) -> str:
    plain = written.replace(",", "")
    whole, _, fraction = plain.partition(".")
    if len(whole) >= _LONG or (len(whole) > 1 and whole[0] == "0"):
        return "".join(_ZH_DIGITS[int(digit)] for digit in whole)
    said = _transformed(str(int(whole)))
    return f"{said}点{''.join(_ZH_DIGITS[int(digit)] for digit in fraction)}" if fraction else said


def _transformed(written: str) -> str:
    import cn2an

    ascii_digits = "".join(str(int(char)) if char.isdecimal() else char for char in written)
    return str(cn2an.transform(ascii_digits, "an2cn"))


def _ja(written: str) -> str:
    whole, _, fraction = written.replace(",", "").partition(".")
    said = " ".join(whole) if len(whole) >= _LONG else str(int(whole))
    return f"{said}点{' '.join(fraction)}" if fraction else said

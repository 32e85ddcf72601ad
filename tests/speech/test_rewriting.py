"""Rules applied to text: earlier ones win, and every character said knows where it comes from."""

from __future__ import annotations

from hypothesis import given, strategies as st

from plait.speech.rewriting import Said, Script, rewrite, rule

RULES = (
    rule(r"\d+", lambda match: None if match[0] == "7" else "number"),
    rule(r"[a-z]\d", "code"),
    rule(r"\*+", ""),
    rule(r"\s-\s", " — "),
)


def sources(script: Script, source: str) -> list[str]:
    pairs = zip(script.starts, script.ends, strict=True)
    return [source[start:end] for start, end in pairs]


def test_what_no_rule_takes_is_said_as_written() -> None:
    assert rewrite("Hello there", RULES) == Script(
        "Hello there", list(range(11)), list(range(1, 12)), []
    )


def test_an_earlier_rule_takes_a_match_from_a_later_one() -> None:
    script = rewrite("a1 b7", RULES)

    assert script.text == "anumber code"
    assert script.rewrites == [Said(1, 2, "number"), Said(3, 5, "code")]


def test_every_character_said_stands_for_its_source() -> None:
    script = rewrite("**12** x", RULES)

    assert script.text == "number x"
    assert sources(script, "**12** x") == ["12"] * 6 + [" ", "x"]


def test_white_space_is_one_space_and_none_before_a_full_stop() -> None:
    assert rewrite("\n\n a \t b  . c", ()).text == "a b. c"


@given(st.text(alphabet="a1 7*-.\n", max_size=60))
def test_a_script_goes_through_its_source_in_order(source: str) -> None:
    script = rewrite(source, RULES)

    assert script.starts == sorted(script.starts)
    assert len(script.text) == len(script.starts) == len(script.ends)
    assert all(0 <= a < b <= len(source) for a, b in zip(script.starts, script.ends, strict=True))
    assert "  " not in script.text

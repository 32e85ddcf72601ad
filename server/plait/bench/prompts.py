"""What the bench asks. The same for every run, but never twice the same, so no cache can help.

Does NOT know engines, except that the scripted one finds its script in the prompt.
"""

from __future__ import annotations

from typing import Any

SUBJECTS = ("the sea", "a lighthouse", "winter", "a long train journey", "bread", "rivers", "owls")
# About 1.3 tokens a word with SmolLM2's tokenizer.
_FILLER = "The old harbour lay quiet under a grey sky while boats moved slowly on the tide."


def story(number: int, *, engine: str = "", tokens: int = 1000) -> list[dict[str, Any]]:
    """A short prompt with a long answer."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    text = f"Story {number}: write a very long and detailed story about {subject}."
    return _user(_scripted(engine, f"tokens={tokens} step_ms=10") + text)


def long_prompt(number: int, words: int, *, engine: str = "") -> list[dict[str, Any]]:
    """A prompt of about `words` words whose first differs from all others'."""
    filler = " ".join([_FILLER] * (words // len(_FILLER.split()) + 1))
    script = _scripted(engine, f"tokens=1000 step_ms=10 prefill_steps={words // 10}")
    return _user(f"{script}Report {number}. {filler} Summarise this report.")


def _scripted(engine: str, script: str) -> str:
    return f"{script} " if engine == "scripted" else ""


def _user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]

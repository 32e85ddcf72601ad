"""docs/field-failures.md promises tests; each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "field-failures.md").read_text()
NAMED = sorted(set(re.findall(r"((?:tests|e2e|web)/[\w/.]+?\.(?:py|js))(?:::(\w+))?", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_promised_test_exists(file: str, name: str) -> None:
    source = (ROOT / file).read_text()
    assert not name or f"def {name}(" in source

"""axe-core in a page: what it finds against the accessibility of what is shown now.

All of its rules, those of WCAG 2.2 AA and its own. Its source is npm's (`make web`); a script
installed before the page's own is not asked by the page's policy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize

from e2e.conftest import WIDE

SOURCE = Path(__file__).parents[1] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
async ([within, rules]) => {
  const only = rules ? { runOnly: { type: "rule", values: rules } } : {};
  const found = await axe.run(within, { preload: false, resultTypes: ["violations"], ...only });
  return found.violations.flatMap(({ id, help, nodes }) => nodes.map(
    ({ html, failureSummary }) => `${id}: ${help}\\n${html.slice(0, 200)}\\n${failureSummary}`,
  ));
}
"""
NARROW: ViewportSize = {"width": 360, "height": 740}
Theme = Literal["light", "dark"]
# The first look of each width is at everything; what a theme changes is colour.
LOOKS: list[tuple[ViewportSize, Theme, bool]] = [
    (WIDE, "light", True),
    (WIDE, "dark", False),
    (NARROW, "dark", False),
    (NARROW, "light", True),
]
COLOUR_RULES = ["color-contrast", "link-in-text-block"]


class Axe:
    """Of one page; made before the page opens."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.add_init_script(path=SOURCE)

    def violations(self, within: str = "html", rules: list[str] | None = None) -> list[str]:
        found: list[str] = self._page.evaluate(RUN, [within, rules])
        return found

    def violations_in_every_look(self) -> list[str]:
        """In both themes, at 1440 and at 360 px; it is wide and light again afterwards."""
        found = []
        for size, theme, everything in LOOKS:
            self._look(size, theme)
            found += [
                f"{size['width']} px, {theme}: {text}"
                for text in self.violations(
                    "html" if everything else "#panel", None if everything else COLOUR_RULES
                )
            ]
        self._look(WIDE, "light")
        return found

    def _look(self, size: ViewportSize, theme: Theme) -> None:
        self._page.set_viewport_size(size)
        self._page.emulate_media(color_scheme=theme)

"""The report on a graph of one's own in a real browser. Run by `tox -e browser`."""

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

from ppgsl_bench.own_graph.document import Bar, Document, Section
from ppgsl_bench.own_graph.rendering import as_html

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

WIDE = Section("Wide", ["A sentence."], [f"column {i}" for i in range(12)], [["0.123 (0.100–0.150)"] * 12] * 3)
REPORT = Document("A report", ["A summary."], [WIDE], [Bar("an-attack", 0.8, 0.7, 0.9, is_reference=False)])


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out_at_any_width(tmp_path, width):
    (tmp_path / "report.html").write_text(as_html(REPORT), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto((tmp_path / "report.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("svg").bounding_box()["width"] <= width
        browser.close()

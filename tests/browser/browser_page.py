"""The page in a real browser: headless Chromium, opened from disk, network off. Run by `tox -e browser`."""

import csv
import io
import os
import random
import re
import shlex
import shutil
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest
from leaderboard_rows import board, failed, publish_row, split_row
from playwright.sync_api import expect, sync_playwright
from typer.testing import CliRunner

from ppgsl_bench.cli import app
from ppgsl_bench.leaderboard.front import strength_at
from ppgsl_bench.leaderboard.measurements import Measurements, curve
from ppgsl_bench.leaderboard.points import points_of
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.webpage import write_page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

EVIL_DEFENSE = "<script>alert(1)</script>"
EVIL_SOURCE = '=HYPERLINK("x") <img src=x onerror=alert(2)> & co'
VIEWS = [
    ("*", "worst", "link-prediction"),
    ("karate", "gae-cos", "node-classification"),
    ("lesmis", "cn", "link-prediction"),
]


def rows():
    """Two graphs, two defenses of this project and a hostile submission, with failures, and scaling runs."""
    own = board(datasets=("karate", "lesmis"), defenses=("random", "edgerand"), settings=4)
    # Real parameters, so that the reproducing command can be tried.
    renamed = [replace(r, defense_label=_real_label(r.defense_label)) for r in own]
    theirs = [
        replace(
            r,
            defense=EVIL_DEFENSE,
            defense_label=r.defense_label.replace("random", EVIL_DEFENSE),
            provenance={**r.provenance, "source": EVIL_SOURCE},
        )
        for r in renamed
        if r.defense == "random" and r.dataset == "karate"
    ]
    index = next(i for i, r in enumerate(renamed) if r.defense == "edgerand" and r.evaluator == "cn")
    renamed = failed(renamed, index, "out-of-memory")
    scaling = [split_row(f"er[n={n}]", 0, nodes=n, links=5 * n) for n in (1000, 10000)]
    scaling += [
        publish_row(f"er[n={n}]", 0, d, wall_seconds=n / 1e4) for n in (1000, 10000) for d in ("random", "edgerand")
    ]
    scaling[-1] = replace(scaling[-1], status="timeout", metrics={}, wall_seconds=None)
    return [*renamed, *theirs, *scaling]


def _real_label(label):
    power = re.search(r"\[power=(.*)\]", label)
    if not power:
        return label
    name = label.partition("[")[0]
    return f"random[rate={power[1]}]" if name == "random" else f"edgerand[epsilon={8 - 4 * float(power[1]):g}]"


@pytest.fixture(scope="module")
def measurements():
    return Measurements(rows())


@pytest.fixture(scope="module")
def address(measurements, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "board.html"
    assert write_page(measurements, path) < 3_000_000
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "no chromium on PATH; install it, or set CHROMIUM to its path"
    with sync_playwright() as playwright:
        # The sandbox needs privileges that containers lack; the page is our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Opens a page in a fresh context and fails the test on console output, errors, dialogs or network requests."""
    troubles, contexts = [], []

    def opened(fragment="", address=address, **options):
        context = browser.new_context(offline=True, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda request: troubles.append(f"request: {request.url}") if is_foreign(request.url) else None
        )
        page.goto(address + fragment)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def is_foreign(url):
    return not url.startswith(("file:", "data:", "blob:"))


def settle(page):
    """Wait until everything is drawn for the present address."""
    page.wait_for_function("document.body.dataset.drawn === location.hash.slice(1)")


def choose(page, **values):
    for name, value in values.items():
        page.locator(f"#{name}").select_option(value)
    settle(page)


def table(page, selector):
    """Cells of a table's body, as text."""
    return [
        [" ".join(cell.inner_text().split()) for cell in line.locator("th, td").all()]
        for line in page.locator(f"{selector} tbody tr").all()
    ]


def defenses(page):
    return [cell.inner_text().split("\n")[0].strip() for cell in page.locator("#ranking tbody th").all()]


def test_it_opens_from_disk_without_a_word_or_a_request(open_page):
    page = open_page()
    expect(page.locator("h1")).to_contain_text("leaderboard")
    assert page.locator("#tradeoff svg.marks").count() == 2
    assert page.locator("#heatmap svg.marks").count() == 1
    assert page.locator("#growth svg.marks").count() == 1


@pytest.mark.parametrize(
    "few",
    [
        board(datasets=("karate",), seeds=1),
        [r for r in board(datasets=("karate",)) if r.defense in {"", "none"}],
        [r for r in board(datasets=("karate",), attacks=("degree",)) if r.kind != "split"],
    ],
    ids=["one seed", "undefended only", "no sizes, none of the paper's attacks"],
)
def test_boards_with_little_on_them_are_shown_without_complaint(open_page, tmp_path, few):
    write_page(Measurements(few), tmp_path / "few.html")
    page = open_page(address=(tmp_path / "few.html").as_uri())
    assert defenses(page)[-1] in {"none", "features only"}
    assert page.locator("#tradeoff svg.marks").count() == 1


def test_the_check_for_requests_and_errors_would_notice_one(browser, address):
    seen = []
    page = browser.new_page()
    page.on("request", lambda request: seen.append(request.url) if is_foreign(request.url) else None)
    page.on("console", lambda message: seen.append(message.type))
    page.set_content("<img src='http://localhost:1/x.png'><script>console.error('x')</script>")
    page.wait_for_timeout(200)
    assert "http://localhost:1/x.png" in seen
    assert "error" in seen
    page.close()


@pytest.mark.parametrize(("dataset", "attack", "utility"), VIEWS)
def test_the_ranking_is_the_one_of_the_command_line(open_page, measurements, dataset, attack, utility):
    page = open_page()
    choose(page, dataset=dataset, attack=attack, utility=utility)
    ranking = rank(measurements, [] if dataset == "*" else [dataset], attack, utility)
    shown = table(page, "#ranking")
    assert len(shown) == len(ranking.standings)
    for line, standing in zip(shown, ranking.standings, strict=True):
        estimate = standing.estimates["strength"]
        assert line[3] == f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
        if not standing.is_reference:
            assert line[0].split()[0] == str(standing.place["strength"].rank)
            assert line[1] == str(standing.place["strength"].group)
            assert line[8] == f"{int(100 * standing.coverage + 1e-9)} %"


@pytest.mark.parametrize(("dataset", "attack", "utility"), VIEWS)
def test_the_points_are_those_of_the_command_line(open_page, measurements, dataset, attack, utility):
    """The page computes them itself, from the values of every seed."""
    page = open_page()
    choose(page, dataset=dataset, attack=attack, utility=utility)
    page.locator("#points summary").click()
    expected = [
        [
            p.setting,
            grid.dataset,
            f"{p.strength.mean:.3f} [{p.strength.low:.3f}, {p.strength.high:.3f}]",
            f"{p.utility.mean:.3f} [{p.utility.low:.3f}, {p.utility.high:.3f}]",
            f"{100 * p.kept.mean:.1f} %",
            "yes" if p.dominated else "no",
            ", ".join(map(str, p.charged)) or "none",
        ]
        for grid in measurements.grids_of([] if dataset == "*" else [dataset], attack, utility)
        for entry in measurements.entries
        for p in points_of(grid, entry, attack, utility)
    ]
    assert table(page, "#points-table") == expected


def test_sorting_by_every_column(open_page):
    page = open_page()
    for key, first in (("hypervolume", "descending"), ("seconds", "ascending"), ("defense", "ascending")):
        header = page.locator(f"#ranking th.col-{key}")
        header.locator("button").click()
        settle(page)
        expect(page.locator(f"#ranking th.col-{key}")).to_have_attribute("aria-sort", first)
        before = defenses(page)[:-2]
        page.locator(f"#ranking th.col-{key} button").press("Enter")
        settle(page)
        second = {"ascending": "descending", "descending": "ascending"}[first]
        expect(page.locator(f"#ranking th.col-{key}")).to_have_attribute("aria-sort", second)
        if key == "defense":
            assert defenses(page)[:-2] == before[::-1] == sorted(before, key=str.lower, reverse=True)
        assert defenses(page)[-2:] == ["none", "features only"]
        # The focus stays where it was, on the button that was rebuilt.
        assert page.evaluate("document.activeElement.dataset.sort") == key
    assert page.locator("#ranking th[aria-sort]").count() == 12
    values = [float(line[7].split()[0]) for line in table(open_page("#sort=hypervolume"), "#ranking")[:-2]]
    assert values == sorted(values, reverse=True)


def test_filtering_by_name_and_source(open_page):
    page = open_page()
    page.locator("#filter").fill("EDGE")
    settle(page)
    assert defenses(page) == ["edgerand", "none", "features only"]
    expect(page.locator("#ranking-count")).to_have_text("1 of 3 defenses")
    page.locator("#filter").fill("hyperlink")
    settle(page)
    assert defenses(page)[0] == EVIL_DEFENSE


@pytest.mark.parametrize("give", [0, 5, 12, 30, 50])
def test_the_slider_names_the_best_defense(open_page, measurements, give):
    page = open_page("#dataset=lesmis&attack=cn")
    page.locator("#give").fill(str(give))
    settle(page)
    grid = measurements.grids["lesmis"]
    values = {}
    for entry in measurements.entries:
        found = curve(grid, entry, "cn", "link-prediction")
        seeds = [found.with_undefended(i) for i in range(len(found.seeds))]
        values[entry.label] = np.mean([strength_at(u, a, 1 - give / 100) for u, a in seeds])
    best = min(values, key=values.get)
    undefended = curve(grid, measurements.entries[0], "cn", "link-prediction").undefended.mean()
    expect(page.locator("#give-value")).to_have_text(f"{give} %")
    text = page.locator("#answer-text").inner_text()
    if values[best] == undefended:
        assert "no defense lowers the attack" in text
    else:
        assert text.startswith(f"{best} protects best: attack strength {values[best]:.3f}")
    assert f"{undefended:.3f}" in text


def test_at_five_percent_the_slider_agrees_with_the_ranking(open_page):
    page = open_page("#dataset=karate&attack=gae-cos")
    first = table(page, "#ranking")[0]
    assert f"attack strength {first[3].split()[0]}" in page.locator("#answer-text").inner_text()


def test_the_slider_moves_by_keyboard(open_page):
    page = open_page()
    page.locator("#give").press("ArrowRight")
    settle(page)
    expect(page.locator("#give-value")).to_have_text("6 %")


def test_clicking_a_point_tells_everything_about_it(open_page, measurements):
    page = open_page("#dataset=karate&attack=cn")
    page.locator("#tradeoff svg [aria-roledescription='point'][aria-label='random[rate=0.5]']").click()
    settle(page)
    dialog = page.locator("#details")
    expect(dialog).to_be_visible()
    expect(page.locator("#details-title")).to_have_text("random[rate=0.5] on karate")
    entry = next(e for e in measurements.entries if e.label == "random")
    point = next(
        p for p in points_of(measurements.grids["karate"], entry, "cn", "link-prediction") if "0.5" in p.setting
    )
    text = " ".join(dialog.inner_text().split())
    assert f"{point.strength.mean:.3f} [{point.strength.low:.3f}, {point.strength.high:.3f}]" in text
    assert "0123456789abcdef0123456789abcdef01234567" in text
    assert measurements.grids["karate"].dataset in text
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert "point" not in page.evaluate("location.hash")


def test_the_reproducing_command_runs(open_page, monkeypatch, tmp_path):
    page = open_page("#dataset=karate&attack=worst-paper&point=" + '["karate","edgerand","edgerand[epsilon=6]"]')
    words = shlex.split(page.locator("#command").inner_text())
    assert words[:2] == ["ppgsl-bench", "run"]
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert options == {
        "--dataset": "karate",
        "--defense": "edgerand[epsilon=6]",
        "--attack": "cn,gae-cos",
        "--utility": "link-prediction",
        "--seeds": "3",
        "--threads": "1",
        "--device": "cpu",
    }
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*words[1:], "--dry-run"])
    assert result.exit_code == 0, result.output
    assert result.output.count("edgerand") == 15  # on each seed: publication, two attacks, an embedding, a task


def test_a_failed_cell_is_shown_where_it_matters(open_page):
    page = open_page()
    expect(page.locator("#gaps")).to_contain_text("charged as undefended")
    expect(page.locator("#gaps")).to_contain_text("out-of-memory")
    expect(page.locator("#growth-failures")).to_contain_text("edgerand on er[n=10000] (timeout)")
    page.locator("#points summary").click()
    page.locator("#points-table button", has_text="edgerand[epsilon=7]").first.click()
    settle(page)
    expect(page.locator("#details")).to_contain_text("Did not finish")
    expect(page.locator("#details")).to_contain_text("charged as undefended")


def test_a_link_reproduces_the_view(open_page, address):
    page = open_page()
    choose(page, dataset="lesmis", attack="gae-cos", utility="node-classification", cost="host")
    page.locator("#ranking th.col-hypervolume button").click()
    page.locator("#filter").fill("rand")
    page.locator("#give").fill("20")
    page.locator("#legend button").first.click()
    page.locator("#theme").click()
    settle(page)
    link = page.url
    copy = open_page(link.removeprefix(address))
    for selector in ("#ranking", "#points-table", "#costs"):
        assert table(copy, selector) == table(page, selector)
    for name, value in {
        "dataset": "lesmis",
        "attack": "gae-cos",
        "utility": "node-classification",
        "give": "20",
    }.items():
        assert copy.locator(f"#{name}").input_value() == value
    assert copy.locator("#answer-text").inner_text() == page.locator("#answer-text").inner_text()
    assert copy.locator("#legend button[aria-pressed='false']").count() == 1
    assert copy.evaluate("document.documentElement.dataset.theme") == "dark"


def test_going_to_another_link_on_the_open_page_changes_the_view(open_page):
    page = open_page()
    page.evaluate("location.hash = 'dataset=lesmis&sort=hypervolume'")
    settle(page)
    assert page.locator("#dataset").input_value() == "lesmis"


def test_a_link_with_nonsense_falls_back_to_the_defaults(open_page):
    page = open_page("#dataset=nowhere&attack=__proto__&sort=constructor&give=-3&point=%5B1%5D&cost=x")
    assert page.locator("#dataset").input_value() == "*"
    assert page.locator("#give").input_value() == "5"
    assert len(table(page, "#ranking")) == 5


def test_the_link_can_be_copied(open_page):
    page = open_page("#dataset=lesmis")
    page.locator("#copy-link").click()
    expect(page.locator("#copy-link")).to_have_text("Copied")


def test_names_from_results_show_as_text(open_page):
    """The fixture fails on any dialog; here: the text is there, and nothing of it became an element."""
    page = open_page("#dataset=karate&hide=2")  # its points lie under those of `random`, whose values it claims
    assert EVIL_DEFENSE in defenses(page)
    expect(page.locator("#ranking")).to_contain_text(EVIL_SOURCE)
    expect(page.locator("#legend")).to_contain_text(EVIL_DEFENSE)
    point = page.locator("#tradeoff svg [aria-roledescription='point'][aria-label^='<script>']").first
    point.hover()
    expect(page.locator("#vg-tooltip-element")).to_contain_text(EVIL_DEFENSE)
    point.click()
    settle(page)
    expect(page.locator("#details-title")).to_contain_text(EVIL_DEFENSE)
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 3


def test_even_markup_that_got_in_could_not_run(browser, address):
    """The content security policy is a second line of defence behind building elements from text."""
    page = browser.new_page()
    page.goto(address)
    page.evaluate(
        "() => { window.refused = []; document.addEventListener('securitypolicyviolation',"
        " event => window.refused.push(event.effectiveDirective)); }"
    )
    page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.ran = 1';"
        " document.body.append(script); }"
    )
    page.evaluate("() => { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 2\">'); }")
    page.evaluate("() => fetch('http://localhost:1/').catch(() => null)")
    page.wait_for_function("window.refused.length >= 4")
    assert set(page.evaluate("window.refused")) == {"script-src-elem", "script-src-attr", "img-src", "connect-src"}
    assert page.evaluate("window.ran") is None
    page.close()


def test_the_heat_map_shows_every_defense_against_every_attack(open_page, measurements):
    page = open_page("#dataset=karate")
    texts = page.locator("#heatmap svg .mark-text.role-mark text").all_text_contents()
    views = measurements.attack_views
    assert len(texts) == len(views) * (len(measurements.entries) + 2)
    value = (
        next(s for s in rank(measurements, ["karate"], "cn").standings if s.label == "edgerand")
        .estimates["strength"]
        .value
    )
    assert f"{value:.2f}" in texts
    cell = page.locator("#heatmap svg [aria-roledescription='text mark'][aria-label*='Attack: gae-cos']").first
    cell.click()
    settle(page)
    assert page.locator("#attack").input_value() == "gae-cos"


def test_floors_lie_under_the_points_that_can_be_selected(open_page):
    page = open_page("#dataset=karate")
    kinds = page.locator("#tradeoff svg [aria-roledescription]").evaluate_all(
        "nodes => nodes.map(node => node.getAttribute('aria-roledescription'))"
    )
    last_floor = max(i for i, kind in enumerate(kinds) if kind == "rule mark")
    assert last_floor < kinds.index("point")


def test_the_legend_hides_curves(open_page):
    page = open_page("#dataset=karate")
    points = "#tradeoff svg [aria-roledescription='point']"
    before = page.locator(points).count()
    page.locator("#legend button", has_text="edgerand").click()
    settle(page)
    assert page.locator(points).count() == before - 4
    assert page.evaluate("document.activeElement.textContent") == "edgerand"


def test_costs_by_quantity(open_page):
    page = open_page()
    assert "1.0 s" in page.locator("#costs").inner_text()
    choose(page, cost="host")
    assert "1.0 MiB" in page.locator("#costs").inner_text()
    choose(page, cost="gpu")
    expect(page.locator("#growth")).to_contain_text("Nothing here ran on a GPU")
    choose(page, cost="seconds")
    assert page.locator("#growth svg.marks").count() == 1


def test_the_table_downloads_as_csv(open_page, measurements):
    page = open_page("#dataset=karate")
    with page.expect_download() as started:
        page.locator("#csv").click()
    text = started.value.path().read_text(encoding="utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    ranking = rank(measurements, ["karate"])
    assert len(lines) == len(ranking.standings)
    for line, standing in zip(lines, ranking.standings, strict=True):
        assert line["defense"] == standing.label
        assert float(line["strength"]) == pytest.approx(standing.estimates["strength"].value, abs=1e-5)
    # A spreadsheet would run it otherwise.
    assert f"'{EVIL_SOURCE}" in [line["source"] for line in lines]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_preferred_scheme_and_can_be_switched(open_page, scheme):
    page = open_page(color_scheme=scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    settle(page)
    assert page.evaluate("document.documentElement.dataset.theme") == {"light": "dark", "dark": "light"}[scheme]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_at_any_width(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate('location.hash = \'point=\' + encodeURIComponent(\'["karate","edgerand","edgerand[epsilon=6]"]\')')
    settle(page)
    box = page.locator("#details").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_it_can_be_used_by_keyboard_and_screen_reader(open_page):
    page = open_page()
    for control in page.locator("select, input").all():
        assert control.evaluate("node => node.labels.length") == 1
    assert page.locator("#ranking thead th:not([scope='col'])").count() == 0
    assert page.locator("#ranking tbody tr:not(:has(th[scope='row']))").count() == 0
    assert page.locator("button").evaluate_all(
        "nodes => nodes.every(node => node.textContent.trim() || node.ariaLabel)"
    )
    for svg in page.locator("svg.marks").all():
        assert svg.get_attribute("aria-label") or svg.locator("[aria-label]").count()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the ranking"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "ranking"
    page.locator("#ranking th.col-defense button").focus()
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_the_page_of_the_same_rows_is_the_same(tmp_path, measurements):
    write_page(measurements, tmp_path / "a.html")
    shuffled = Measurements(random.Random(0).sample(rows(), len(rows())))
    write_page(shuffled, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_address_survives_encoding(open_page):
    page = open_page("#filter=%26%3D%23")
    assert page.locator("#filter").input_value() == "&=#"
    page.locator("#filter").fill("a b")
    settle(page)
    assert "filter=a+b" in unquote(page.url)

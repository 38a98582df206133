"""The report in a real browser: Debian's Chromium, driven by Playwright.

``python -m tests.report.test_browser`` makes the screenshots of the documentation anew.
"""

import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from counterpoint import Augmenter, Factorization, Sparse
from counterpoint.checks import audit
from counterpoint.report import Extras, Reliability, write_report
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites
from tests.examples import HashedMask, first_column, make_data
from tests.report.reading import report

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
LARGER_PHONE = {"width": 390, "height": 844}
KINDS = ("full", "plain", "many", "windows")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")

DRAWN = """svgs => svgs.filter(svg => svg.getClientRects().length).map(svg => {
    const box = svg.getBoundingClientRect();
    const parts = [...svg.querySelectorAll('path, text, image, use')];
    const seen = parts.filter(part => { const b = part.getBoundingClientRect(); return b.width + b.height > 0; });
    const marks = seen.filter(part => part.tagName != 'text' && (getComputedStyle(part).fill != 'none'
        || getComputedStyle(part).stroke != 'none'));
    return {name: svg.parentElement.closest('figure').id, width: box.width, height: box.height, marks: marks.length,
        texts: seen.filter(part => part.tagName == 'text').length};
})"""
TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter(e => !e.closest('svg') && !e.closest('.scroll *')
    && !e.matches('.skip') && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 0.5)
    .map(e => e.tagName + '#' + e.id + '.' + e.className)"""
SPILLED = """svgs => svgs.filter(svg => svg.getClientRects().length).flatMap(svg => {
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();
        return b.left < box.left - 2 || b.right > box.right + 2 || b.top < box.top - 2 || b.bottom > box.bottom + 2; })
        .map(t => svg.parentElement.closest('figure').id + ': ' + t.textContent); })"""
OVERLAPPING = """svgs => svgs.filter(svg => svg.getClientRects().length).flatMap(svg => {
    const all = [...svg.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]), found = [];
    for (const [i, [a, one]] of all.entries()) for (const [b, two] of all.slice(i + 1)) {
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > 1 && y > 3) found.push(svg.parentElement.closest('figure').id + ': ' + one + ' and ' + two); }
    return found; })"""
CONTRAST = """() => {
    const parse = c => c.match(/[\\d.]+/g).map(Number);
    const light = c => { const [r, g, b] = parse(c).slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126*r + 0.7152*g + 0.0722*b; };
    const paper = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if ((parse(c)[3] ?? 1) > 0.99) return c; } return 'rgb(255, 255, 255)'; };
    const words = 'h1, h2, h3, h4, p, li, a, th, td, caption, figcaption, summary, .light, .chip, .value, svg text';
    const shown = e => e.getClientRects().length && e.textContent.trim();
    return [...document.querySelectorAll(words)].filter(shown).map(e => {
        const style = getComputedStyle(e), ink = e.matches('svg text') ? style.fill : style.color;
        const [a, b] = [light(ink), light(paper(e))].sort((x, y) => y - x);
        return [(a + 0.05) / (b + 0.05), e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 30)]; });
}"""


def sprites_report(path, rows=2000, *, full=True):
    """The report on four sprites without noise, with everything or with nothing that is optional."""
    world, task, rng = Sprites(noise_std=0.0), Place(4), np.random.default_rng(0)
    data = collect(world, uniform_policy(world), rows, rng, reward_fn=task, episode_length=50, reset_probability=0.0)
    made = Augmenter(world.factors, world.mask, task).fill(data, 5 * rows, rng=rng)
    motion = ("x (canvas widths)", "y (canvas widths)", "vx (widths per step)", "vy (widths per step)")
    extras = {
        "audit": audit(made, world.step),
        "draw": lambda state, action, mask: draw_sprites(state, action=action, mask=mask),
        "about": {"seed": 0, "command": f"counterpoint augment sprites.npz --size {5 * rows} --report report.html"},
        "labels": dict.fromkeys(world.factors.state, motion) | {"action": ("click x (−1 to 1)", "click y (−1 to 1)")},
    }
    extras = extras if full else {"reliability": Reliability([0.1, 0.6, 0.9], [0.2, 0.5, 0.95], [50, 20, 90])}
    return report(path, data, made, world.factors, world.mask, rng=np.random.default_rng(1), **extras)


def many_report(path):
    """The report on 30 factors with long names."""
    rng = np.random.default_rng(0)
    names = [f"object number {k} of the kitchen & <hall>" for k in range(30)]
    factors = Factorization.blocks(state=dict.fromkeys(names, 2), action={"the left hand": 1, "the right hand": 1})
    mask = HashedMask(factors, 0.01)
    data = make_data(factors, 100, rng)
    made = Augmenter(factors, mask, first_column, policy=Sparse()).fill(data, 300, rng=rng)
    return report(path, data, made, factors, mask, rng=rng, policy=Sparse())


def windows_report(path):
    """The report on windows of eight rows, with film strips."""
    world, task, rng = Sprites(noise_std=0.0), Place(4), np.random.default_rng(0)
    data = collect(world, uniform_policy(world), 3000, rng, reward_fn=task, episode_length=50, reset_probability=0.0)
    augmenter = Augmenter(world.factors, world.mask, task, window=8, pairing="sharing")
    made = augmenter.fill(data, 60, rng=rng)
    extras = Extras(draw=lambda state, action, mask: draw_sprites(state, action=action, mask=mask))
    return write_report(path, data, made, augmenter, rng=rng, audit=audit(made, world.step), extras=extras)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    plain = sprites_report(folder / "plain.html", 300, full=False)
    return {
        "full": sprites_report(folder / "full.html", 300),
        "plain": plain,
        "many": many_report(folder / "many.html"),
        "windows": windows_report(folder / "windows.html"),
    }


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


class Visit:
    """A page that is open, and all it said and asked for."""

    def __init__(self, browser, path, viewport=DESKTOP, scheme="light", scale=1):
        self.context = browser.new_context(
            viewport=viewport, color_scheme=scheme, device_scale_factor=scale, reduced_motion="reduce"
        )
        self.said, self.asked = [], []
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def unfold(self):
        self.page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_nothing_asks_for_nothing_and_every_figure_is_drawn(browser, pages, kind):
    with Visit(browser, pages[kind]) as visit:
        visit.unfold()
        found = visit.page.eval_on_selector_all("figure svg", DRAWN)
        assert len(found) >= 16
        for figure in found:
            assert figure["width"] > 150, figure
            assert figure["height"] > 60, figure
            assert figure["marks"] > 3, figure
            assert figure["texts"] > 3, figure
        broken = "images => images.filter(image => !(image.complete && image.naturalWidth > 50)).length"
        assert visit.page.eval_on_selector_all("img", broken) == 0
        assert visit.said == []
        assert [url for url in visit.asked if not url.startswith("data:")] == [pages[kind].as_uri()]


@pytest.mark.parametrize(
    "viewport",
    [PHONE, LARGER_PHONE, {"width": 768, "height": 1000}, DESKTOP],
    ids=["phone", "larger phone", "tablet", "desktop"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_never_scrolls_sideways_and_nothing_spills_or_overlaps(browser, pages, kind, viewport):
    with Visit(browser, pages[kind], viewport) as visit:
        for _ in range(2):
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            assert visit.page.evaluate(TOO_WIDE) == []
            assert visit.page.eval_on_selector_all("figure svg", SPILLED) == []
            assert visit.page.eval_on_selector_all("figure svg", OVERLAPPING) == []
            visit.unfold()


def edges(box):
    """How bright the left and the right edge of an element are on the screen, from 0 to 255."""
    from PIL import Image

    seen = np.asarray(Image.open(io.BytesIO(box.screenshot())).convert("L"), float)
    return np.median(seen[:, 1]), np.median(seen[:, -2])


def test_a_phone_shows_where_a_table_goes_on(browser, pages):
    """A shadow lies on the edge behind which there is more, and only there."""
    with Visit(browser, pages["full"], LARGER_PHONE) as visit:
        wide = [
            box
            for box in visit.page.locator(".scroll:visible").all()
            if box.evaluate("e => e.scrollWidth - e.clientWidth") > 32
        ]
        assert len(wide) >= 2
        for box in wide:
            left, right = edges(box)
            assert right < left - 40
            box.evaluate("e => { e.scrollLeft = e.scrollWidth }")
            left, right = edges(box)
            assert left < right - 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(browser, pages, scheme):
    """Contrast of text against its paper, by the rule for small print (4.5 to 1)."""
    with Visit(browser, pages["full"], scheme=scheme) as visit:
        visit.unfold()
        weak = [(round(ratio, 2), what) for ratio, what in visit.page.evaluate(CONTRAST) if ratio < 4.5]
        assert weak == []
        paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(paper[4:].split(",")[0]) < 60) == (scheme == "dark")


def test_the_keyboard_reaches_everything(browser, pages):
    with Visit(browser, pages["full"]) as visit:
        wanted = visit.page.eval_on_selector_all(
            "a, summary, .scroll", "all => all.filter(e => e.checkVisibility()).length"
        )
        reached = []
        for _ in range(wanted):
            visit.page.keyboard.press("Tab")
            reached.append(
                visit.page.evaluate(
                    "(() => { const e = document.activeElement, s = getComputedStyle(e), b = e.getBoundingClientRect();"
                    "return [e.tagName, e.getAttribute('href'), s.outlineStyle, b.right > 0]; })()"
                )
            )
        assert reached[0][:2] == ["A", "#verdict"]
        assert [link for name, link, *_ in reached if name == "A"][1:] == [
            "#" + slug for slug in visit.page.eval_on_selector_all("section", "all => all.map(e => e.id)")
        ]
        assert {name for name, *_ in reached} == {"A", "SUMMARY", "DIV"}
        assert all(outline == "solid" and seen for *_, outline, seen in reached)


def test_links_and_folds_work_by_keyboard(browser, pages):
    with Visit(browser, pages["full"]) as visit:
        link = visit.page.locator("nav a[href='#gallery']")
        link.focus()
        visit.page.keyboard.press("Enter")
        assert abs(visit.page.evaluate("document.querySelector('#gallery').getBoundingClientRect().top")) < 60
        summary = visit.page.locator("#gallery summary").first
        summary.focus()
        visit.page.keyboard.press("Enter")
        assert visit.page.locator("#gallery details").first.evaluate("e => e.open")


def screenshots(folder):
    """Write the screenshots of the documentation, with few colours to keep them small."""
    from PIL import Image

    pages = {"report": sprites_report(folder / "report.html"), "windows": windows_report(folder / "windows.html")}
    shots = (
        ("report", DESKTOP, "light", 1, "header", "#graphs"),
        ("report-phone", PHONE, "light", 2, "header", "#funnel"),
        ("report-gallery", DESKTOP, "dark", 1, "#gallery", "#gallery"),
        ("windows-film", DESKTOP, "light", 1, "#windows", "#accepted-0"),
    )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name, viewport, scheme, scale, first, last in shots:
            with Visit(browser, pages[name.split("-")[0]], viewport, scheme, scale) as visit:
                top, bottom = (visit.page.locator(selector).bounding_box() for selector in (first, last))
                start, end = max(0, top["y"] - 24), bottom["y"] + bottom["height"] + 16
                clip = {"x": 0, "y": start, "width": viewport["width"], "height": end - start}
                visit.page.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip, timeout=120_000)
            shot = folder / f"{name}.png"
            picture = Image.open(shot).convert("RGB").quantize(256, dither=Image.Dither.NONE)
            picture.save(shot, optimize=True)
            print(f"{shot}: {picture.width} x {picture.height}, {shot.stat().st_size / 1024:.0f} KB")
        browser.close()
    for path in pages.values():
        path.unlink()


if __name__ == "__main__":
    screenshots(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images").resolve())

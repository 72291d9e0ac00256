"""The page alone: it holds everything, and nothing in it points outside."""

import json
import re
import shutil
import subprocess

import pytest
from PIL import Image
from reading import Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OWN = (".google.com", "update.googleapis.com", ".gvt1.com")
"""Hosts that the browser itself asks, page or no page."""


@pytest.fixture(scope="module")
def source(report):
    return (report / "report.html").read_text()


def test_nothing_is_loaded_from_anywhere(source):
    page = Page(source)
    assert page.tags.isdisjoint({"script", "iframe", "object", "embed", "base", "form", "img"})
    for tag, name, value in page.attributes:
        assert name not in ("src", "srcset", "action", "formaction", "background", "poster")
        assert not name.startswith("on")
        if name in ("href", "xlink:href"):
            drawn = tag == "image" and value.startswith("data:image/png;base64,")
            assert value.startswith("#") or (tag, value) == ("link", "data:,") or drawn
            if value.startswith("#"):
                assert value[1:] in page.ids
        for address in re.findall(r"url\(([^)]*)\)", value or ""):
            assert address.startswith("#")
    style = source.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in source.replace("http-equiv", "")


def test_it_can_be_read_by_everyone(source):
    page = Page(source)
    assert len(page.ids) == len(set(page.ids))
    assert set(page.captions) == set(page.tables)
    assert '<html lang="en">' in source
    assert source.index('href="#main"') < source.index("<header>")
    assert "prefers-color-scheme: dark" in source
    assert "@media print" in source
    labels = [value for tag, name, value in page.attributes if name == "aria-labelledby"]
    assert all(part in page.ids for value in labels for part in value.split())
    drawings = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "role")]
    assert drawings == ["img"] * source.count("<figure")
    regions = [value for tag, name, value in page.attributes if name == "tabindex"]
    assert regions.count("0") == len(page.tables)
    assert "#14181c" not in source.split("</style>")[1]


def test_the_same_results_give_the_same_bytes(example, report, tmp_path, make):
    from robustbench_elliptical.reports import write_report

    write_report(example[1:], tmp_path / "one")
    write_report(example[1:], tmp_path / "two")
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes(), path.name


def browse(path, folder, *options):
    log = folder / "net.json"
    command = [
        CHROMIUM, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run",
        "--disable-background-networking", "--disable-component-update",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
        "--enable-logging=stderr", "--virtual-time-budget=2000", *options, path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    asked = re.findall(r'"url":"([a-z]+://[^"/]*)', log.read_text())
    outside = {
        each
        for each in asked
        if not each.startswith(("file:", "chrome:")) and not each.endswith(OWN)
    }
    return outside, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
SCHEMES = {"light": "1", "dark": "0"}


@needs_browser
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [400, 1400])
def test_a_browser_finds_no_error_and_asks_for_nothing(report, tmp_path, width, scheme):
    shot = tmp_path / "shot.png"
    options = [
        f"--window-size={width},1200",
        f"--screenshot={shot}",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
    ]
    assert browse(report / "report.html", tmp_path, *options) == (set(), [])
    image = Image.open(shot).convert("L")
    assert image.width == width
    corner = image.getpixel((1, image.height - 2))
    assert corner > 200 if scheme == "light" else corner < 60
    # Something is written on it.
    darkest, lightest = image.getextrema()
    assert lightest - darkest > 150


@needs_browser
def test_the_browser_would_notice(tmp_path):
    path = tmp_path / "evil.html"
    path.write_text('<img src="http://a.invalid/x.png"><script>console.error("boo")</script>')
    outside, console = browse(path, tmp_path, "--dump-dom")
    assert outside == {"http://a.invalid"}
    assert "boo" in console[0]


def test_an_svg_file_stands_alone(report):
    for path in (report / "figures").glob("*.svg"):
        text = path.read_text()
        assert text.startswith("<?xml")
        assert "<dc:date>" not in text
    document = json.loads((report / "report.json").read_text())
    names = [figure["name"] for section in document["sections"] for figure in section["figures"]]
    assert len(names) == len(set(names)) == len(list((report / "figures").glob("*.svg")))

"""The explorer in a real browser, as people use it."""

from __future__ import annotations

import ast
import re

import cv2
import numpy as np
import pytest

import mkdesc
from mkdesc.explorer.page import export_page

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect


def settle(page):
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")


def reading(page):
    settle(page)
    return page.text_content("#reading")


def score(page):
    settle(page)
    return float(page.text_content("#score b"))


def contours(page):
    outlines = "lines => lines.map(line => line.getAttribute('d'))"
    return sorted(page.locator("#map .contourlayer path").evaluate_all(outlines))


def middle_of(page, selector):
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def write_patch(path, rng, size=64):
    blurred = cv2.GaussianBlur(rng.random((size, size)), (0, 0), 3)
    patch = cv2.normalize(blurred, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    path.write_bytes(cv2.imencode(".png", patch)[1].tobytes())
    return patch


def test_drag_the_pixel(open_page, address):
    page = open_page(address)
    before = contours(page)
    assert len(before) > 10
    x, y = middle_of(page, "#pad")
    side = page.locator("#pad").bounding_box()["width"]
    page.mouse.move(x, y)
    page.mouse.down()
    assert "p: column 31.5, row 31.5" in reading(page)
    page.mouse.move(x + 16 / 63 * side, y - 16 / 63 * side, steps=5)
    assert "p: column 47.5, row 15.5" in reading(page)
    assert contours(page) != before
    page.mouse.up()
    page.mouse.move(x, y)
    assert "p: column 47.5, row 15.5" in reading(page)  # only while it is held
    cross, pad = (page.locator(s).bounding_box() for s in ("#cross", "#pad"))
    assert cross["x"] - pad["x"] == pytest.approx(47.5 / 63 * side, abs=1)
    assert cross["y"] - pad["y"] == pytest.approx(15.5 / 63 * side, abs=1)


def test_the_address_holds_the_view(open_page, address):
    page = open_page(address)
    page.select_option("#whitening", "polar-cartesian-lw")
    page.locator("#pad").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_label("angle θ of q").fill("-22.5")
    page.wait_for_function("() => location.hash.includes('qt=-22.5')")
    assert page.input_value("#kernel") == "polar+cartesian"
    again = open_page(page.url)
    assert reading(again) == reading(page)
    assert "column 28" in reading(again)
    assert again.input_value("#whitening") == "polar-cartesian-lw"
    assert again.text_content("#python") == page.text_content("#python")
    assert contours(again) == contours(page)


def test_python_line_computes_the_map_that_is_shown(open_page, address):
    view = "#k=extended&w=extended&x=40&y=22&pt=30&qt=10&pz=-0.3&qs=saddle&qd=20"
    page = open_page(address + view)
    call = ast.parse(page.text_content("#python"), mode="eval").body
    assert ast.unparse(call.func) == "mkdesc.patch_map"
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    shown = mkdesc.patch_map(*map(ast.literal_eval, call.args), **options)
    row, column = np.unravel_index(shown.argmax(), shown.shape)
    assert f"most similar: column {column}, row {row}" in reading(page)
    assert float(page.text_content("#highest")) == pytest.approx(shown.max(), rel=0.01)
    assert float(page.text_content("#lowest")) == pytest.approx(shown.min(), rel=0.01)


def test_switching_kernels_and_whitenings(open_page, address):
    page = open_page(address)
    page.select_option("#kernel", "cartesian")
    settle(page)
    assert "x(1,1)*y(1,1)*theta(8,3)" in page.text_content("#dims")
    page.select_option("#whitening", "polar-lw")  # brings its own kernels
    settle(page)
    assert page.input_value("#kernel") == "polar"
    page.select_option("#kernel", "extended")  # has no use for that whitening
    settle(page)
    assert page.input_value("#whitening") == ""
    assert page.get_by_label("shape of q", exact=True).is_visible()
    assert page.locator("#shape-map .contourlayer path").count() > 5


def test_composing_changes_curves_and_map(open_page, address):
    page = open_page(address + "#k=cartesian")
    curves, best = page.locator("#curves .scatterlayer").inner_html(), reading(page)
    page.get_by_label("κ of x").press("ArrowRight")
    settle(page)
    assert "x(1.19,1)" in page.text_content("#dims")
    assert page.input_value("#kernel") == "x(1.19,1)*y(1,1)*theta(8,3)"
    assert page.locator("#curves .scatterlayer").inner_html() != curves
    page.get_by_label("N of y").press("ArrowRight")
    settle(page)
    assert "A descriptor of 105 numbers" in page.text_content("#dims")
    assert reading(page) != best
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "N of y"
    page.get_by_label("Attribute").nth(1).select_option("x")
    expect(page.locator("#problem")).to_have_text(
        "Parametrization: x is there twice in one product."
    )
    expect(page.get_by_label("Attribute").nth(1)).to_have_value("y")
    page.get_by_label("Remove θ").click()
    page.get_by_role("button", name="Add product").click()
    settle(page)
    expected = "x(1.19,1)*y(1,2) + x(8,2)*y(8,2)*theta(8,2)"
    assert page.text_content("#dims").endswith(expected)
    mkdesc.as_parametrization(expected)


def test_what_is_not_checked_yet_is_not_shown(open_page, address):
    page = open_page(address + "#k=cartesian")
    # Patches are to follow a slider at rest; another change comes before that, its frame after.
    page.evaluate(
        """async () => {
            const frame = () => new Promise(requestAnimationFrame);
            const control = (name) => [...document.querySelectorAll(`[aria-label="${name}"]`)];
            const slider = control("κ of x")[0];
            slider.value = Number(slider.value) + 0.1;
            slider.dispatchEvent(new Event("input"));
            await frame();
            window.requestAnimationFrame = (show) => setTimeout(show, 300);
            const attribute = control("Attribute")[1];
            attribute.value = "x";
            attribute.dispatchEvent(new Event("change"));
        }"""
    )
    expect(page.locator("#problem")).to_contain_text("x is there twice")
    settle(page)


def test_every_preset_shows_something_else(open_page, address):
    page = open_page(address)
    seen = set()
    for button in page.locator("#presets button").all():
        button.click()
        settle(page)
        assert button.get_attribute("aria-pressed") == "true"
        lesson = "".join(page.locator(".lesson").all_text_contents())
        assert len(lesson) > 50
        assert page.is_hidden("#problem")
        seen.add(lesson)
    assert len(seen) == page.locator("#presets button").count() >= 5


def test_presets_show_what_they_say(open_page, address):
    def best(preset):
        page.get_by_role("button", name=preset).click()
        numbers = re.findall(r"\d+(?:\.\d+)?", reading(page))
        return np.array(numbers[:2], float), np.array(numbers[2:4], float)

    page = open_page(address)
    p, ring = best("The relative angle turns the map")
    centre = 31.5
    assert np.linalg.norm(ring - p) > 3
    radii = np.linalg.norm(p - centre), np.linalg.norm(ring - centre)
    assert radii[0] == pytest.approx(radii[1], abs=2)
    p, ring = best("Cartesian kernels forgive shifts")
    np.testing.assert_allclose(ring, p, atol=1)

    def similarities(preset):
        page.wait_for_selector("body[data-tabulated]")
        before = page.get_attribute("body", "data-tabulated")
        page.get_by_role("button", name=preset).click()
        expect(page.locator("body")).not_to_have_attribute("data-tabulated", before)
        rows = page.locator("#choices tr").all()
        return {
            r.locator("th").inner_text(): float(r.locator(".number").inner_text()) for r in rows
        }

    found = similarities("Turn a patch and see who minds")
    assert found["polar, raw"] > max(found["polar-absolute, raw"], found["cartesian, raw"])
    found = similarities("Shift it instead")
    theirs = ["polar", "polar-absolute", "cartesian-relative", "polar+cartesian"]
    assert found["cartesian, raw"] > max(found[f"{name}, raw"] for name in theirs) + 0.05


def test_keyboard_alone(open_page, address):
    page = open_page(address)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "pad":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    assert "p: column 19, row 29" in reading(page)
    for _ in range(5):
        page.keyboard.press("Shift+ArrowLeft")
    assert "p: column 0, row 29" in reading(page)
    page.keyboard.press("Home")
    settle(page)
    assert page.get_attribute("#pad", "aria-valuetext") == "column 31.5, row 31.5"
    page.focus("#photo")
    before = score(page)
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Enter")
    assert score(page) != before


def test_turning_a_patch_lowers_its_similarity(open_page, address):
    page = open_page(address + "#a=corner&b=corner&rot=0")
    assert score(page) == 1
    page.locator("#rot").fill("20")
    turned = score(page)
    assert turned < 0.999
    page.locator("#rot").fill("40")
    assert score(page) < turned
    page.get_by_role("button", name="polar-lw").click()
    settle(page)
    assert page.input_value("#whitening") == "polar-lw"
    assert page.locator("#choices tr[aria-current=true]").count() == 1


def test_upload_of_patches(open_page, address, tmp_path, rng):
    patches = [write_patch(tmp_path / f"{name}.png", rng) for name in "ab"]
    page = open_page(address + "#rot=0&k=extended&w=extended")
    page.set_input_files("#image-file", tmp_path / "a.png")
    expect(page.locator("#patch-a")).to_have_value("file a.png")
    page.check("[name=slot][value=b]")
    page.set_input_files("#image-file", tmp_path / "b.png")
    expect(page.locator("#patch-b")).to_have_value("file b.png")
    a, b = mkdesc.describe(np.stack(patches), model="extended")
    assert score(page) == pytest.approx(a @ b, abs=6e-4)
    a, b = mkdesc.describe(np.stack(patches), model="paper")
    expect(page.locator("#choices")).to_contain_text(f"model paper{a @ b:.3f}")


def test_upload_of_a_photo_and_cutting(open_page, address, tmp_path, rng):
    image = np.kron(rng.integers(0, 256, (10, 15), np.uint8), np.ones((20, 20), np.uint8))
    (tmp_path / "photo.jpg").write_bytes(cv2.imencode(".jpg", image)[1].tobytes())
    page = open_page(address)
    page.set_input_files("#image-file", tmp_path / "photo.jpg")
    expect(page.locator("#photo")).to_have_attribute("width", "300")
    page.mouse.click(*middle_of(page, "#photo"))
    settle(page)
    x, y, side = map(int, page.input_value("#patch-a").removeprefix("photo@").split(","))
    # A click is at whole pixels of the screen, and the photo may not be.
    assert (x, y, side) == (pytest.approx(150, abs=1), pytest.approx(100, abs=1), 72)


def test_upload_of_a_whitening(open_page, address, tmp_path, rng):
    mkd = mkdesc.MKD("x(4,1)*theta(8,2)")
    raw = mkd.transform(rng.random((60, 64, 64)))
    mkd.whitening = mkdesc.Whitening("pcawt", dims=6).fit(raw)
    mkdesc.save_model(mkd, tmp_path / "mine.safetensors")
    page = open_page(address)
    page.set_input_files("#model-file", tmp_path / "mine.safetensors")
    expect(page.locator("#whitening")).to_have_value("mine")
    expected = mkdesc.patch_map((20, 20), "x(4,1)*theta(8,2)", whitening=mkd)
    assert float(page.text_content("#highest")) == pytest.approx(expected.max(), rel=0.01)


def test_bad_uploads_are_refused_in_words(open_page, address, tmp_path):
    bad = [
        ("#image-file", "a.png", b"no image", "a.png: expected a PNG, JPEG, WebP or BMP image"),
        ("#image-file", "b.png", b"\x89PNG\r\n\x1a\n....", "b.png: this image: truncated"),
        ("#model-file", "c.safetensors", b"\x80\x04.", "c.safetensors: this model: is a pickle"),
    ]
    page = open_page(address, expected=["Failed to load resource"])
    for field, name, content, message in bad:
        (tmp_path / name).write_bytes(content)
        page.set_input_files(field, tmp_path / name)
        expect(page.locator("#problem")).to_contain_text(message)
    page.locator("#pad").press("ArrowRight")
    assert "column 21" in reading(page)


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
def test_what_is_wrong_is_said_where_one_looks(open_page, address, tmp_path, width, height):
    """The field for files is far down the page; the message must be in view from there."""
    (tmp_path / "c.safetensors").write_bytes(b"\x80\x04.")
    page = open_page(address, width, height, expected=["Failed to load resource"])
    page.locator("#model-file").scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.set_input_files("#model-file", tmp_path / "c.safetensors")
    expect(page.locator("#problem")).to_be_in_viewport(ratio=1)


def test_pictures_download(open_page, address, tmp_path):
    page = open_page(address + "#k=polar&w=polar-lw&a=blob&b=blob")
    for button, size in (("#save-map", (2000, 1040)), ("#save-patches", (2000, 680))):
        with page.expect_download() as download:
            page.click(button)
        target = tmp_path / download.value.suggested_filename
        download.value.save_as(target)
        picture = cv2.imread(str(target))
        assert picture.shape[1::-1] == size
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 50
    middle, corner = picture[380, 265].astype(int), picture[180, 60].astype(int)
    assert (middle > corner + 100).all()  # the bright blob of patch A


def check_local_models(page, folder, rng):
    """Model files are read by the page itself, and what is wrong with one is said."""
    mkd = mkdesc.MKD("x(4,1)*theta(8,2)")
    raw = mkd.transform(rng.random((60, 64, 64)))
    mkd.whitening = mkdesc.Whitening("pcawt", dims=6).fit(raw)
    file = folder / "mine.safetensors"
    mkdesc.save_model(mkd, file)
    whole = file.read_bytes()
    page.set_input_files("#model-file", file)
    expect(page.locator("#whitening")).to_have_value("mine")
    expected = mkdesc.patch_map(
        (12, 30), "x(4,1)*theta(8,2)", q_theta=np.deg2rad(20), whitening=mkd
    )
    assert float(page.text_content("#highest")) == pytest.approx(expected.max(), rel=0.01)
    damaged = {
        whole[:-4]: "its tensors are not whole",
        b"\x80\x04.": "expected a model file of mkdesc",
        whole.replace(b'\\"schema\\": 2', b'\\"schema\\": 1'): "expected a model file of schema 2",
        whole.replace(b"[15, 6]", b"[14, 6]", 1): "its head is not one: 14 numbers follow 15",
        whole.replace(b"x(4,1)*theta", b"x(4,9)*theta"): "its head is not one",
    }
    for content, message in damaged.items():
        assert content != whole
        file.write_bytes(content)
        page.set_input_files("#model-file", file)
        expect(page.locator("#problem")).to_contain_text(message)


def test_exported_file_works_from_disk(open_page, address, tmp_path, rng):
    target = tmp_path / "kernels.html"
    export_page(target)
    view = "#k=polar&w=polar-lw&x=30&y=12&qt=20&rot=7"
    refused = ["Content Security Policy", "violates the following", "Fetch API cannot load"]
    page = open_page(target.as_uri() + view, expected=refused)
    served = open_page(address + view)
    assert reading(page) == reading(served)
    assert score(page) == score(served)
    check_local_models(page, tmp_path, rng)
    patch = write_patch(tmp_path / "p.png", rng)
    page.set_input_files("#image-file", tmp_path / "p.png")
    expect(page.locator("#patch-a")).to_have_value("file p.png")
    shown = page.evaluate(
        "() => { const c = document.getElementById('canvas-a');"
        "document.getElementById('shares').click(); return new Promise(done => "
        "requestAnimationFrame(() => setTimeout(() => done([...c.getContext('2d')"
        ".getImageData(0, 0, 64, 64).data]), 50))) }"
    )
    np.testing.assert_allclose(np.reshape(shown, (64, 64, 4))[..., 0], patch, atol=1)
    page.set_input_files("#image-file", target)
    page.wait_for_selector("#problem:visible")
    assert "expected a PNG" in page.text_content("#problem")
    tried = page.evaluate(
        "() => new Promise(done => { const s = document.createElement('script');"
        "s.textContent = 'window.injected = 1'; document.body.append(s);"
        "fetch('data:,x').then(() => done('fetched'), () => done(window.injected ?? 'refused'))})"
    )
    assert tried == "refused"


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_overflows_on_small_screens(open_page, address, width):
    page = open_page(address + "#k=extended&see=ridge", width=width)
    page.evaluate("document.getElementById('compose').open = true")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    outside = page.evaluate(
        "() => [...document.querySelectorAll('main *')].filter(e => { const b = "
        "e.getBoundingClientRect(); return b.width > 1 && e.checkVisibility() && "
        "!e.closest('svg') && (b.left < 0 || b.right > innerWidth + 1) }).map(e => e.outerHTML)"
    )
    assert outside == []
    page.locator("#pad").scroll_into_view_if_needed()
    box = page.locator("#pad").bounding_box()
    page.mouse.click(box["x"] + 1, box["y"] + 1)
    assert "p: column 0, row 0" in reading(page)


def test_addresses_that_mean_nothing_are_explained(open_page, address):
    views = [
        "#k=<img src=x onerror=alert(1)>&see=<b>&a=<b>&b=photo@1,2",
        "#k=constructor&qs=constructor&constructor=1",
        "#k=x(1,1)*x(1,1)",
        "#k=shape",
        "#k=phi(8,99)",
        "#k=x(8,12)*y(8,12)*theta(8,12)",
        "#w=nothing",
        "#k=polar&w=cartesian-lw",
        "#k=toString(8,2)",
        "#a=file+gone.png",
    ]
    page = open_page(address)
    for view in views:
        page.goto(f"{address}{view}&x=NaN&y=1e9&pt=&ps=cube&b=photo@1,2,-3")
        if view in views[:2]:  # at the beginning, and not only when the address changes
            page.reload()
        expect(page.locator("#problem")).to_be_visible()
        page.wait_for_timeout(100)
        assert page.is_visible("#problem")  # it stays until something is done
        assert "p: column 20, row 63" in reading(page)
        assert page.input_value("#kernel") == "polar"
        assert page.locator("#problem img").count() == 0

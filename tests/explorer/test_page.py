import base64
import json
import re

import numpy as np

import mkdesc
from mkdesc.explorer.data import page_data
from mkdesc.explorer.page import MODULES, bundle, export_page, single_page, static_text
from mkdesc.explorer.patches import bundled_patches, sample_photo


def test_data_is_what_python_computes_with():
    data = page_data()
    assert mkdesc.as_parametrization(data["named"]["extended"]) == mkdesc.as_parametrization(
        "extended"
    )
    models = {model["name"]: model for model in data["models"]}
    assert {"paper", "extended", "polar-lw", "polar-pca"} <= set(models)
    one_square = {name for name in mkdesc.bundled_models() if mkdesc.load_model(name).squares == 1}
    assert one_square <= set(models)
    assert "photo" not in one_square
    projection = mkdesc.load_model("paper").effective_head().linear()
    tensor = models["paper"]["tensors"]["head.2.matrix"]
    matrix = np.frombuffer(base64.b64decode(tensor["data"]), "<f4")
    np.testing.assert_array_equal(matrix.reshape(projection.matrix.shape), projection.matrix)
    assert models["paper"]["head"][0] == {"op": "power", "exponent": 0.75}
    assert models["paper-32px"]["patch_size"] == 32


def test_names_of_whitenings_are_unique():
    names = [model["name"] for model in page_data()["models"]]
    assert len(names) == len(set(names))


def test_patches_differ_and_fill_their_range():
    patches = bundled_patches(sample_photo())
    assert {"corner", "edge", "blob", "ridge", "texture"} <= set(patches)
    centres = [pixels[16:80, 16:80] for _, pixels in patches.values()]
    assert all(np.ptp(centre) > 80 for centre in centres)
    descriptors = mkdesc.describe(np.stack(centres))
    similarities = descriptors @ descriptors.T - np.eye(len(centres))
    assert similarities.max() < 0.9


def test_drawn_patches_are_what_they_are_called():
    patches = {name: pixels.astype(float) for name, (_, pixels) in bundled_patches().items()}
    blob = patches["blob"]
    np.testing.assert_array_equal(blob, blob.T)
    assert np.unravel_index(blob.argmax(), blob.shape) in ((47, 47), (48, 48))
    edge = patches["edge"]
    assert edge[:, :20].mean() + 100 < edge[:, -20:].mean()


def test_every_module_is_bundled_after_what_it_imports():
    for index, name in enumerate(MODULES):
        wanted = re.findall(r'from "\./([\w.]+)"', static_text(name))
        assert set(wanted) <= set(MODULES[:index]), name


def test_bundle_has_no_imports_left():
    text = bundle({name: static_text(name) for name in MODULES})
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)


def test_single_page_refers_to_nothing_outside(tmp_path):
    page = single_page()
    ours = page.replace(page[page.index("<script>") : page.index("</script>") + 9], "")
    assert not re.search(r"""(src|href)=["'](?!data:,)""", ours)
    assert ours.count("<script") == ours.count("</script>") == 2
    inline = re.search(r'id="data">(.*?)</script>', page)
    assert json.loads(inline[1])["version"] == mkdesc.__version__
    export_page(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page

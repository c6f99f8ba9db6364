"""A model of your own.

The projection is learned again from eight views, without labels, in seconds. How far apart are
patches that match, and others, before and after? The less the two overlap, the fewer matches are
wrong. (The patches are of the portrait and its copy, of which the views show parts: this shows
that learning works, not how well it does elsewhere.)
"""

import numpy as np
from matplotlib.figure import Figure

import mkdesc
from mkdesc.images import cut_patches
from mkdesc.images.demo import photograph, warped
from mkdesc.learn import Recipe

raw = mkdesc.MKD("extended-24", patch_size=24, side=20)
whitening = mkdesc.Whitening("gda", ridge=1e-4, power=0.75)
recipe = Recipe(patch_size=24, side=24, keypoints_per_photo=500)
learned = mkdesc.learn.learn_photos("demo/views", raw, whitening=whitening, recipe=recipe)
print(*learned.report.lines(), sep="\n")
learned.save("mine.safetensors", overwrite=True)

image = photograph()
copy, _ = warped(image)
found = mkdesc.match_images(image, copy, ratio=None)
pairs = found.pairs[found.inliers]
patches = [
    cut_patches(pixels, keypoints[rows], 24, 20.0)
    for pixels, keypoints, rows in [
        (image, found.keypoints_a, pairs[:, 0]),
        (copy, found.keypoints_b, pairs[:, 1]),
    ]
]
figure = Figure(figsize=(8, 3), layout="constrained")
for axes, (title, mkd) in zip(
    figure.subplots(1, 2),
    {"kernels alone": raw.fit(), "learned": mkdesc.load_model("mine.safetensors")}.items(),
    strict=True,
):
    a, b = (mkd.transform(cut) for cut in patches)
    others = np.roll(b, len(b) // 2, axis=0)
    for name, partner in {"match": b, "do not": others}.items():
        axes.hist(np.linalg.norm(a - partner, axis=1), 40, alpha=0.7, density=True, label=name)
    axes.set(title=title, xlabel="distance of descriptors", yticks=[])
    axes.legend()
figure.savefig("retrain.png", dpi=100)

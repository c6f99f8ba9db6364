"""``mkdesc export``: descriptors in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mkdesc._support.check import check_ending
from mkdesc._support.optional import needed
from mkdesc._support.targets import check_target, is_inside, is_same
from mkdesc._support.workfolder import WorkFolder
from mkdesc.cli.options import Overwrite
from mkdesc.cli.progress import progress, resumable
from mkdesc.datasets.hpatches.csv_files import is_written, write_csv
from mkdesc.datasets.hpatches.layout import IMAGES, HPatches
from mkdesc.evaluation.contenders.base import PatchDescriptor, ProjectedDescriptor, file_name
from mkdesc.evaluation.contenders.registry import get_descriptor
from mkdesc.measures.descriptors import as_descriptors
from mkdesc.models import PATCH_MODEL, model_file, open_model

app = typer.Typer(help="Write descriptors and models for other tools.", no_args_is_help=True)


@app.command("hpatches-csv")
def _hpatches_csv(
    root: Annotated[Path, typer.Argument(help="Folder of sequences in the HPatches layout.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder in which to create NAME.")
    ],
    descriptor: Annotated[
        str, typer.Option(help="A descriptor by name, as for `mkdesc evaluate`.")
    ] = PATCH_MODEL,
    name: Annotated[
        str | None, typer.Option(help="Name of the folder; default: that of the descriptor.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing files.")
    ] = False,
) -> None:
    """Write descriptors as csv files for the official HPatches code.

    The files are DIR/NAME/<sequence>/<image>.csv.
    """
    dataset = HPatches(root)
    found = get_descriptor(descriptor)
    if not isinstance(found, (PatchDescriptor, ProjectedDescriptor)):
        raise ValueError(f"--descriptor: expected one that needs only patches, got {descriptor}")
    folder = output / (name or file_name(descriptor))
    for sequence in dataset:
        if is_same(folder, sequence.folder) or is_inside(folder, sequence.folder):
            raise ValueError(f"{sequence.folder}: is an input; choose another output")
    dataset.counts()  # everything that is wrong with the strips is said before the work
    work = WorkFolder(str(folder), f"{folder}.mkdesc.json")
    settings = {"descriptor": descriptor, "identity": found.identity}
    inputs = {sequence.name: sequence.folder for sequence in dataset}
    if overwrite:
        Path(work.record).unlink(missing_ok=True)  # until all files are replaced
    else:
        work.open(settings, inputs)
    with resumable(), progress("images") as bar:
        task = bar.add_task("writing", total=len(dataset) * len(IMAGES))
        for sequence in dataset:
            for image in IMAGES:
                if overwrite or not is_written(folder, sequence.name, image, len(sequence)):
                    patches = sequence.read(image)
                    what = f"{descriptor}: descriptors of {sequence.name}, {image}"
                    rows = as_descriptors(found.describe(patches), len(patches), what)
                    write_csv(folder, sequence.name, image, rows)
                bar.advance(task)
    if overwrite:
        work.open(settings, inputs, fresh=True)
    print(f"{folder}: {len(dataset)} sequences")


@app.command("onnx")
def _onnx(
    model: Annotated[
        str,
        typer.Argument(
            help="Bundled model, model file, FILE:SET:METHOD, or the detector: learned, or "
            "learned:WEIGHTS for your own weights."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL.onnx", help="Where to write.")
    ],
    dtype: Annotated[
        str,
        typer.Option(help="Type of the input patches or images: float32 (from 0 to 1) or uint8."),
    ] = "float32",
    overwrite: Overwrite = False,
) -> None:
    """Write a model for ONNX runtimes: patches in, unit vectors out.

    Of the detector: images in, and for every pixel its score, place and angle out; one level of
    its pyramid.
    """
    with needed("ONNX needs PyTorch", "onnx"):
        from mkdesc.compute.torch.export import OWN_ONNX
        from mkdesc.images.detectors.learned_onnx import OWN_KEYPOINTS_ONNX
        from mkdesc.torch import MKDescriptor, export_keypoints_onnx, export_onnx

    check_ending("--output", output, [".onnx"])
    detector, _, weights = model.partition(":")
    if detector == "learned":
        reads = (Path(weights),) if weights else ()
        check_target(output, reads, OWN_KEYPOINTS_ONNX, overwrite)
        export_keypoints_onnx(output, weights or "keypoints", dtype, overwrite=overwrite)
        print(f"{output}: {dtype} images (N, 1, H, W) to scores, places and angles")
        return
    check_target(output, (model_file(model),), OWN_ONNX, overwrite)
    descriptor = MKDescriptor(open_model(model))
    export_onnx(descriptor, output, dtype, overwrite=overwrite)
    size, squares = descriptor.patch_size, descriptor.squares
    print(
        f"{output}: {dtype} patches (N, {squares}, {size}, {size}) to descriptors "
        f"(N, {descriptor.out_dims})"
    )

"""The descriptor as a PyTorch module of plain operations, on any device, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from mkdesc._support.arrays import HIGHEST, LOWEST, out_of_range
from mkdesc._support.check import MOST_SQUARES, check_integer
from mkdesc.compute.terms import Plane, make_terms
from mkdesc.compute.torch.derivatives import gradients, second_order, smoothed
from mkdesc.compute.torch.fused import Fused, make_fused
from mkdesc.compute.torch.kappas import Kappas
from mkdesc.compute.torch.pixels import (
    gradient_quantities,
    headroom,
    intensity_quantities,
    shape_quantities,
    standardised,
)
from mkdesc.compute.torch.stages import head_module, to_head
from mkdesc.compute.torch.sums import Sums
from mkdesc.heads.head import Head
from mkdesc.kernels.parametrization import Parametrization
from mkdesc.kernels.patches import SMALLEST
from mkdesc.kernels.pixelfeatures import own_features

#: Patches at a time where no gradients are wanted: bounds the memory, and on a CPU keeps what is
#: computed in its caches.
CPU_CHUNK, CHUNK, FUSED_CHUNK = 48, 8192, 1 << 16

#: Relative size below which single precision loses a tap.
TINY_TAP = 1e-6

_INTEGERS = {torch.uint8: 255, torch.uint16: 65535}


def check_range(patches: Tensor, name: str = "patches") -> None:
    """Refuse floats (N, ..., W, W) that are not from 0 to 1, on the CPU; by name of the argument.

    On other devices nothing is looked at: to wait for the answer takes longer than to describe.
    """
    if torch.compiler.is_compiling() or patches.device.type != "cpu" or not patches.numel():
        return
    if not patches.is_floating_point():
        return
    each = patches.detach().reshape(len(patches), -1)
    low, high = each.amin(1), each.amax(1)
    bad = ((low < LOWEST) | (high > HIGHEST)) & high.isfinite() & low.isfinite()
    if bad.any():
        i = int(bad.int().argmax())
        raise ValueError(f"{name}[{i}] {out_of_range(float(low[i]), float(high[i]))}")


class Descriptor(nn.Module):
    """Patches (N, W, W) or (N, 1, W, W), of several squares (N, k, W, W), to vectors (N, D).

    Parameters
    ----------
    parametrization
        What is computed.
    patch_size
        Side W of the patches.
    head
        What raw descriptors go through; None: nothing.
    squares
        How many squares k around a keypoint are described together: their raw descriptors, end to
        end, are what the head takes.
    learn_kappas
        Whether the concentrations of the kernels are parameters.
    fused
        Whether compiled code may be used where no gradients are wanted: kernels on CUDA, where
        they know the descriptor, and on a CPU the loops of the backend ``cpu``.
    """

    def __init__(
        self,
        parametrization: Parametrization,
        patch_size: int,
        head: Head | None = None,
        *,
        squares: int = 1,
        learn_kappas: bool = False,
        fused: bool = True,
    ) -> None:
        super().__init__()
        check_integer("patch_size", patch_size, SMALLEST)
        check_integer("squares", squares, 1, MOST_SQUARES)
        raw_dims = squares * parametrization.dims
        if head is not None and head.dims_in != raw_dims:
            raise ValueError(
                f"head: learned on {head.dims_in} numbers, but the descriptor has {raw_dims}"
            )
        self.parametrization, self.patch_size = parametrization, patch_size
        self.squares = squares
        self.preparation = parametrization.preparation
        side = patch_size // self.preparation.reduction(patch_size)
        terms = make_terms(parametrization, side)
        self.planes = terms.planes
        self.quantities = terms.quantities
        self.taps = self.preparation.taps(patch_size).tolist()
        # Taps of the smallest patches vanish beside each other in single precision, but not all in
        # double, and the direction of a gradient depends on them: computed as the definition does.
        self.exact = not self.preparation.standardise and min(self.taps) < TINY_TAP
        self.sums = Sums(terms)
        self.kappas = Kappas(parametrization) if learn_kappas else None
        self.head = nn.Sequential() if head is None else head_module(head)
        self.fused = fused
        self._known: tuple[Any, Head] | None = None
        self.out_dims = raw_dims if head is None else head.dims_out

    def extra_repr(self) -> str:
        """What is computed of which patches."""
        squares = f", squares={self.squares}" if self.squares > 1 else ""
        return f"{self.parametrization}, patch_size={self.patch_size}{squares}"

    def forward(self, patches: Tensor) -> Tensor:
        """Describe patches (N, W, W) or (N, k, W, W); uint8, uint16 or any float.

        Integers become multiples of their type's maximum. The result (N, D) is in single
        precision, or in that of the weights: double, or half.
        """
        patches = self._checked(patches)
        if torch.compiler.is_compiling():
            if patches.device.type == "cuda" and not _is_exporting():
                return self._uncompiled(patches)
            return self._describe(patches)
        return self._in_chunks(patches)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _uncompiled(self, patches: Tensor) -> Tensor:
        """As without :func:`torch.compile`, which takes very long over these operations on CUDA.

        The kernels there are compiled already.
        """
        return self._in_chunks(patches)

    def _in_chunks(self, patches: Tensor) -> Tensor:
        if patches.device.type == "meta" or (torch.is_grad_enabled() and self._learns(patches)):
            return self._describe(patches)
        if self._compiled(patches):
            with suppress(ValueError):  # not finite: plain operations say what comes of that
                return self._by_compiled_loops(patches)
        kernels = self._kernels(patches)
        step = CPU_CHUNK if patches.device.type == "cpu" else CHUNK
        describe: Callable[[Tensor], Tensor] = self._describe
        if kernels is not None:
            step, describe = (
                FUSED_CHUNK,
                partial(
                    kernels.describe,
                    head=self.head,
                    dtype=self.sums.dtype,
                    squares=self.squares,
                ),
            )
        if len(patches) <= step:
            return describe(patches)
        step -= step % self.squares
        shape = (len(patches) // self.squares, self.out_dims)
        out = patches.new_empty(shape, dtype=self.sums.dtype)
        for start in range(0, len(patches), step):
            rows = slice(start // self.squares, (start + step) // self.squares)
            out[rows] = describe(patches[start : start + step])
        return out

    def _compiled(self, patches: Tensor) -> bool:
        """Whether the loops of the backend ``cpu`` do the same, in less time."""
        return (
            self.fused
            and self.kappas is None
            and patches.device.type == "cpu"
            and patches.dtype in (torch.uint8, torch.float32, torch.float64)
            and self.sums.dtype == torch.float32
            and type(patches) in (Tensor, nn.Parameter)
            and not torch.is_autocast_enabled("cpu")
            and not _is_transformed(patches)
            and find_spec("numba") is not None
        )

    def _by_compiled_loops(self, patches: Tensor) -> Tensor:
        from mkdesc.compute.cpu.backend import describe

        found = describe(
            patches.detach().contiguous().numpy(),
            self.parametrization,
            head=self._current_head(),
            squares=self.squares,
            n_threads=torch.get_num_threads(),
        )
        return torch.from_numpy(found)

    def _current_head(self) -> Head | None:
        """The head as its modules have it now."""
        if not len(self.head):
            return None
        tensors = [*self.head.parameters(), *self.head.buffers()]
        if any(tensor.is_inference() for tensor in tensors):  # which do not say when they change
            return to_head(self.head)
        state = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors)
        if self._known is None or self._known[0] != state:
            self._known = state, to_head(self.head)
        return self._known[1]

    def _kernels(self, patches: Tensor) -> Fused | None:
        """The fused kernels for these patches, if there are any."""
        if not self.fused or self.kappas is not None or patches.device.type != "cuda":
            return None
        if patches.dtype not in (torch.uint8, torch.float32, torch.float16, torch.bfloat16):
            return None
        if self.sums.dtype == torch.float64 or len(patches) == 0:
            return None
        return make_fused(self.parametrization, patches.shape[-1], patches.device)

    def _learns(self, patches: Tensor) -> bool:
        return patches.requires_grad or any(p.requires_grad for p in self.parameters())

    def _checked(self, patches: Tensor) -> Tensor:
        """Patches as (N, W, W), the squares of one keypoint after each other."""
        shape = tuple(patches.shape)
        if patches.ndim == 4 and shape[1] == self.squares:
            patches = patches.flatten(0, 1)
        elif self.squares > 1:
            k, w = self.squares, self.patch_size
            raise ValueError(f"patches: expected (N, {k}, {w}, {w}), got {shape}")
        reduced = self.preparation.reduced_size  # to which all multiples of it are reduced
        size = patches.shape[-1]
        fits = size == self.patch_size or (
            reduced is not None and size % reduced == 0 and size > 0
        )
        if patches.ndim != 3 or patches.shape[1] != patches.shape[2] or not fits:
            w = self.patch_size
            raise ValueError(f"patches: expected (N, {w}, {w}) or (N, 1, {w}, {w}), got {shape}")
        if patches.device != self.sums.device:
            raise ValueError(
                f"patches: expected them on {self.sums.device}, where the descriptor is, got "
                f"{patches.device}"
            )
        if not (patches.is_floating_point() or patches.dtype in _INTEGERS):
            raise ValueError(f"patches: expected uint8, uint16 or floats, got {patches.dtype}")
        return patches

    def _describe(self, patches: Tensor) -> Tensor:
        # Half precision has no room for the differences that count; the head may have it.
        kind = patches.device.type
        with nullcontext() if kind == "meta" else torch.autocast(kind, enabled=False):
            gains = None if self.kappas is None else self.kappas()
            raw = self.sums(self._planes(patches), gains)
        return self.head(raw.reshape(-1, self.squares * raw.shape[1])).to(self.sums.dtype)

    def _planes(self, patches: Tensor) -> list[Tensor]:
        """The planes (N, S, S), in at least single precision."""
        wide = torch.promote_types(self.sums.dtype, torch.float32)
        preparation, names = self.preparation, {name for name, _ in self.quantities}
        image, unit = self._reduced(patches, wide)
        scale = headroom(preparation) / _INTEGERS.get(patches.dtype, 1)
        if not self.exact and scale != 1:
            image = image * scale
        image = smoothed(image, self.taps)
        if preparation.standardise:
            image = standardised(image, preparation.softening / unit)
            unit = torch.ones_like(unit)
        found: dict[tuple[str, int], Tensor] = {}
        if "theta" in names:
            count = 1 + max(k for name, k in self.quantities if name == "theta")
            gx, gy = gradients(image)
            if self.exact:
                gx, gy = (gx * scale).to(wide), (gy * scale).to(wide)
            these = gradient_quantities(gx, gy, preparation, unit, count)
            found |= {("theta", k): value for k, value in enumerate(these)}
        if "intensity" in names:
            these = intensity_quantities(image)
            found |= {("intensity", k): value for k, value in enumerate(these)}
        if "shape" in names:
            these = shape_quantities(*second_order(image))
            found |= {("shape", k): value for k, value in enumerate(these)}
        for feature in self.parametrization.own:
            own = own_features(feature, image.detach().double().cpu().numpy())
            values = torch.from_numpy(own).to(image.device, wide)
            found |= {(feature.name, k): values[..., k] for k in range(feature.dims)}
        return [_product(plane, found) for plane in self.planes]

    def _reduced(self, patches: Tensor, wide: torch.dtype) -> tuple[Tensor, Tensor]:
        """Patches (N, S, S), and what they were divided by (N, 1, 1) to be at most 1.

        Means are subtracted for the sake of precision alone: only differences count.
        """
        whole = patches.dtype in _INTEGERS
        kind = torch.float64 if self.exact else wide
        image = patches.to(kind if whole else torch.promote_types(patches.dtype, kind))
        unit = torch.ones_like(image[:, :1, :1])
        if not whole:
            unit = image.detach().abs().amax(dim=(1, 2), keepdim=True).clamp_min(1)
            image = image / unit
        if not self.exact:
            middle = image.detach().mean(dim=(1, 2), keepdim=True)
            image = (image - (middle.round() if whole else middle)).to(kind)
        factor = self.preparation.reduction(patches.shape[-1])
        if factor > 1:
            image = avg_pool2d(image[:, None], factor)[:, 0]
        return image, unit.to(wide)


def _is_transformed(patches: Tensor) -> bool:
    """Whether a transform of torch.func looks on, which must see every operation."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(patches))


def _is_exporting() -> bool:
    """Whether torch.export looks on; before PyTorch 2.7 it could not be told from compiling."""
    exporting = getattr(torch.compiler, "is_exporting", None)
    return True if exporting is None else bool(exporting())


def _product(plane: Plane, quantities: dict[tuple[str, int], Tensor]) -> Tensor:
    first, *rest = plane
    value = quantities[first]
    for other in rest:
        value = value * quantities[other]
    return value

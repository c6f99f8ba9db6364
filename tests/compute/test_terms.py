"""The terms alone are enough: descriptors from dense products in numpy, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from mkdesc import as_parametrization, register_feature
from mkdesc.compute import reference
from mkdesc.compute.terms import make_terms
from mkdesc.kernels.parametrization import NAMED
from mkdesc.kernels.pixelvalues import pixel_values


def quantity(values, name, number):
    """A pixel quantity (S, S), from its name and number, of :func:`pixel_values`."""
    if name == "theta":
        harmonic = (number + 1) // 2 * values["theta"]
        turned = np.cos(harmonic) if number % 2 or not number else np.sin(harmonic)
        return values["weight"] * turned
    if name == "intensity":
        return np.abs(values["intensity"]) if number else values["intensity"]
    return values[name][..., number]


def dense_planes(patches, parametrization, terms):
    """All planes (N, P, S, S) of patches."""
    planes = []
    for patch in patches:
        values = pixel_values(patch, parametrization.preparation, 1 / 255, parametrization.own)
        found = {q: quantity(values, *q) for q in terms.quantities}
        planes.append([np.prod([found[q] for q in plane], axis=0) for plane in terms.planes])
    return np.array(planes)


def assemble(sums, terms):
    """Descriptors (N, D) from the sums (N, P, F) of all planes times all functions."""
    raw = np.zeros((len(sums), terms.dims))
    np.add.at(raw.T, terms.component, (sums[:, terms.plane, terms.function] * terms.factor).T)
    for start, end in zip(terms.part_starts, terms.part_starts[1:], strict=False):
        raw[:, start:end] /= np.linalg.norm(raw[:, start:end], axis=1, keepdims=True)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


SPECS = [
    *(
        (name, 48 if kernels.preparation.reduced_size == 24 else 64)
        for name, kernels in NAMED.items()
    ),
    *((name, 17) for name in NAMED if "extended" not in name),
    ("polar+cartesian", 9),
    ("x(2,3)*y(3,2)*rho(1,1)*phi(4,1) + theta(3,2)*relative_theta(2,1)*x(1,1)", 21),
    ("standard: shape*intensity(2)*rho(2,2) + relative_theta(8,3)*x(1,1) + shape", 32),
]


@pytest.mark.parametrize(("spec", "size"), SPECS)
def test_dense_products_of_planes_and_functions_are_the_descriptor(rng, spec, size):
    parametrization = as_parametrization(spec)
    patches = rng.integers(0, 256, (3, size, size), np.uint8)
    side = size // parametrization.preparation.reduction(size)
    terms = make_terms(parametrization, side)
    planes = dense_planes(patches, parametrization, terms)
    sums = np.einsum("npyx,fyx->npf", planes, terms.functions)
    expected = reference.describe(patches, parametrization)
    np.testing.assert_allclose(assemble(sums, terms), expected, atol=1e-7)

    if terms.separation is not None:
        along_x = planes @ terms.separation.across.T
        both = np.einsum("npya,by->npba", along_x, terms.separation.down)
        sums = both[:, :, terms.separation.of_y, terms.separation.of_x] * terms.separation.factor
        np.testing.assert_allclose(assemble(sums, terms), expected, atol=1e-7)


def test_features_of_one_s_own_are_quantities(rng):
    register_feature("corner_of_terms", lambda x: np.stack([x, x**2], axis=-1), 2)
    parametrization = as_parametrization("standard: corner_of_terms(2)*x(1,1)*theta(8,1)")
    terms = make_terms(parametrization, 32)
    assert ("corner_of_terms", 1) in terms.quantities
    patches = rng.integers(0, 256, (2, 32, 32), np.uint8)
    sums = np.einsum(
        "npyx,fyx->npf", dense_planes(patches, parametrization, terms), terms.functions
    )
    expected = reference.describe(patches, parametrization)
    np.testing.assert_allclose(assemble(sums, terms), expected, atol=1e-7)


@pytest.mark.parametrize(
    ("spec", "separable"),
    [("cartesian", True), ("extended", True), ("polar", False), ("x(2,3)*rho(1,1)", False)],
)
def test_products_of_x_and_y_are_recognised(spec, separable):
    terms = make_terms(as_parametrization(spec), 32)
    assert (terms.separation is not None) == separable


def test_each_function_and_plane_is_there_once():
    terms = make_terms(as_parametrization("polar+cartesian"), 16)
    flat = terms.functions.reshape(len(terms.functions), -1)
    flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    same = flat @ flat.T - np.eye(len(flat))  # of some the negative is there too
    assert same.max() < 1 - 1e-9
    assert len(set(terms.planes)) == len(terms.planes) == 7
    np.testing.assert_allclose(np.abs(terms.functions).max(axis=(1, 2)), 1)

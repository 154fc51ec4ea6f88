"""Sums, products and cosines of kernels, and the kernel of pictures: Gram blocks, scales, storage, training."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import oracle
from kcrf_core import KernelCRF
from kcrf_core.config import load_yaml, parse_config
from kcrf_core.errors import ConfigError
from kcrf_core.kernels import (
    UNSEEN,
    Group,
    KernelConfig,
    Pivots,
    PolynomialKernel,
    fit_kernel,
    gram,
    kernel_from_dict,
)
from kcrf_core.kernels.composite import CosineKernel, Part, ProductKernel, SumKernel
from kcrf_core.kernels.image import ImageKernel
from kcrf_core.kernels.plain import LinearKernel, RBFKernel
from problems import random_inputs

POLY = PolynomialKernel(2, 0.5, 1.0, 0.7)
WORDS, SOUNDS = Group(codes=(0, 2)), Group(codes=(1,), real=(0, 1), bag=True)
SUM = SumKernel((Part(WORDS, POLY), Part(SOUNDS, RBFKernel(0.3))), (0.5, 1.5))
PRODUCT = ProductKernel((Part(WORDS, POLY), Part(SOUNDS, RBFKernel(0.3)), Part(WORDS, LinearKernel())), 0.2)
NESTED = SumKernel(
    (Part(Group((0, 1), (0,)), ProductKernel((Part(Group((1,)), POLY),), 2.0)), Part(WORDS, POLY)), (1, 2)
)
COMPOSITES = {
    "sum": SUM,
    "product": PRODUCT,
    "nested": NESTED,
    "cosine-linear": CosineKernel(LinearKernel()),
    "cosine-poly": CosineKernel(POLY),
    "cosine-sum": CosineKernel(SUM),
    "sum-of-cosines": SumKernel((Part(WORDS, CosineKernel(POLY)), Part(SOUNDS, LinearKernel())), (1.0, 1.0)),
}
IMAGE_SETTINGS = ((5, 4), 1, 1.2)
IMAGE_KERNEL = ImageKernel(1.0, *IMAGE_SETTINGS)
composite = pytest.mark.parametrize("kernel", COMPOSITES.values(), ids=COMPOSITES)


@composite
def test_gram_agrees_with_naive_kernels(rng, kernel):
    rows, pivots = random_inputs(rng, 11, 3, 2, 5), random_inputs(rng, 5, 3, 2, 5)
    expected = oracle.gram(kernel, rows, pivots)
    np.testing.assert_allclose(gram(kernel, rows, pivots), expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(gram(kernel, rows, pivots, np.float32), expected, rtol=5e-5, atol=5e-6)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(oracle.gram(kernel, rows, rows)), rtol=1e-11)


def test_the_image_kernel_agrees_with_its_formula(rng):
    kernel = ImageKernel(0.3, *IMAGE_SETTINGS)
    rows, pivots = random_inputs(rng, 6, 0, 20), random_inputs(rng, 4, 0, 20)
    rows.real[rows.real < 0.3] = 0
    expected = oracle.gram(kernel, rows, pivots)
    np.testing.assert_allclose(gram(kernel, rows, pivots), expected, rtol=1e-11)
    np.testing.assert_allclose(gram(kernel, rows, pivots, np.float32), expected, rtol=5e-5, atol=5e-6)
    np.testing.assert_array_equal(kernel.diagonal(rows), np.ones(6))


def test_a_moved_picture_is_nearer_than_another_one():
    """What no kernel on pixels sees: one stroke a pixel further is still the stroke, a stroke across is not."""
    upright, moved, lying = (np.zeros((8, 8)) for _ in range(3))
    upright[2:6, 3], moved[2:6, 4], lying[5, 2:6] = 1, 1, 1
    pictures = np.stack([upright.ravel(), moved.ravel(), lying.ravel()])
    inputs = replace(random_inputs(np.random.default_rng(0), 3, 0, 64), real=pictures)
    K = gram(ImageKernel(0.1, (8, 8), 2, 1.5), inputs, inputs)
    assert K[0, 1] > 2 * K[0, 2]
    assert pictures[0] @ pictures[1] == 0 and pictures[0] @ pictures[2] == 1


def test_a_row_has_the_same_bytes_in_any_block(rng):
    """Parts of a Gram matrix may be computed again with other rows around them."""
    for kernel in (*COMPOSITES.values(), LinearKernel(), RBFKernel(0.2)):
        rows, pivots = random_inputs(rng, 300, 3, 2, 5), random_inputs(rng, 50, 3, 2, 5)
        check_partitions(rows, pivots, kernel)
    rows, pivots = random_inputs(rng, 300, 0, 20), random_inputs(rng, 700, 0, 20)
    check_partitions(rows, pivots, ImageKernel(0.3, *IMAGE_SETTINGS))
    check_partitions(rows, pivots, POLY)


@composite
def test_errors_of_a_row_do_not_depend_on_its_company(rng, kernel):
    """Machines that have some rows each say together what one says of all."""
    rows, pivots = random_inputs(rng, 23, 3, 2, 5), random_inputs(rng, 7, 3, 2, 5)
    errors, some = kernel.value_errors(rows, pivots), np.arange(3, 23, 4)
    assert errors.shape == (23,) and (errors > 0).all()
    assert kernel.value_errors(rows.take(some), pivots).tolist() == errors[some].tolist()


EVEN = PolynomialKernel(2, 0.5, 0.0, 0.7)
TOGETHER = Group(real=(0, 1, 2))
NEAR_ZERO = {
    "linear": LinearKernel(),
    "poly": EVEN,
    "poly-3": PolynomialKernel(3, 1.5, 0.0, 0.3),
    "sum": SumKernel((Part(TOGETHER, EVEN), Part(Group(real=(1,)), LinearKernel())), (0.5, 1.5)),
    "product": ProductKernel((Part(TOGETHER, EVEN), Part(Group(real=(0, 2)), LinearKernel())), 0.2),
}


def exact_value(kernel, x, y):
    """The value of a kernel without `coef0` for two rows of fractions."""
    if kernel.type in ("sum", "product"):
        values = [
            exact_value(one.kernel, *([row[r] for r in one.group.real] for row in (x, y))) for one in kernel.parts
        ]
        if kernel.type == "sum":
            return sum(Fraction(weight) * value for weight, value in zip(kernel.weights, values, strict=True))
        return Fraction(kernel.scale) * math.prod(values)
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    return (
        inner if kernel.type == "linear" else Fraction(kernel.scale) * (Fraction(kernel.gamma) * inner) ** kernel.degree
    )


@pytest.mark.parametrize("inner", NEAR_ZERO.values(), ids=NEAR_ZERO)
def test_errors_of_cosines_are_bounded_near_zero_and_by_little(rng, inner):
    inputs = random_inputs(rng, 30, 0, 3)
    inputs.real[:] *= 10.0 ** rng.uniform(-20, 0, (30, 1))
    kernel, rows = (
        CosineKernel(inner),
        [[Fraction(number) for number in row] for row in inputs.real.tolist()],
    )
    K, errors = gram(kernel, inputs, inputs), kernel.value_errors(inputs, inputs)
    assert errors.max() < 1e-13
    lengths = [exact_value(inner, row, row) for row in rows]
    with localcontext() as context:
        context.prec = 40
        for i, j in itertools.product(range(30), repeat=2):
            value = exact_value(inner, rows[i], rows[j])
            square = value * value / (lengths[i] * lengths[j])
            exact = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt().copy_sign(1 if value > 0 else -1)
            assert abs(exact - Decimal(float(K[i, j]))) <= errors[i]


def test_bounds_of_kernels_with_other_errors_grow_near_zero(rng):
    """Values of numbers too small for a double, and of kernels that say nothing of sqrt(k(x, x) k(x', x'))."""
    rows, pivots = random_inputs(rng, 5, 0, 2), random_inputs(rng, 4, 0, 2)
    rows.real[2] *= 1e-79
    errors = CosineKernel(EVEN).value_errors(rows, pivots)
    assert errors[2] > 1e100 and np.delete(errors, 2).max() < 1e-13

    class Unknown(PolynomialKernel):
        def relative_errors(self, inputs, pivots):
            return None

    rows.real[2] *= 1e74
    assert CosineKernel(Unknown(2, 0.5, 0.0, 0.7)).value_errors(rows, pivots)[2] > 1e-8
    parts = (
        Part(Group(real=(0,)), Unknown(2, 0.5, 0.0, 0.7)),
        Part(Group(real=(1,)), LinearKernel()),
    )
    assert CosineKernel(SumKernel(parts, (1.0, 1.0))).value_errors(rows, pivots)[2] > 1e-10


def test_a_cosine_without_a_constant_is_certified_on_numbers_near_zero(rng):
    found = []
    for factor in (1.0, 1e-8):
        rng = np.random.default_rng(3)
        numbers = rng.normal(size=(20, 6, 1))
        labels = np.where(numbers[..., 0] + 0.5 * rng.normal(size=(20, 6)) > 0, "a", "b").tolist()
        numbers[::4, 2] *= factor
        model = KernelCRF(
            kernel="poly",
            coef0=0.0,
            cosine=True,
            size=2,
            scale="none",
            sigma2=3.0,
            precision="double",
            certify="exact",
        )
        found.append(model.fit(list(numbers), labels).model_.info["training"])
    assert [one["stop"] for one in found] == ["certified", "certified"]
    assert (
        found[1]["outside_bound"] == pytest.approx(found[0]["outside_bound"], rel=0.1) and found[1]["outside_bound"] < 1
    )


def check_partitions(rows, pivots, kernel):
    for dtype in (np.float32, np.float64):
        prepared = Pivots(pivots, kernel, dtype)
        whole = prepared.gram(rows)
        for first, last in ((0, 1), (7, 8), (3, 20), (100, 131), (17, 300)):
            np.testing.assert_array_equal(prepared.gram(rows.take(slice(first, last))), whole[first:last])


def test_unseen_values_count_in_the_part_that_looks_at_them(rng):
    inputs = random_inputs(rng, 4, 3, 1)
    inputs.codes[:, 0] = 1
    new = replace(inputs, codes=inputs.codes.copy())
    new.codes[:, 0] = UNSEEN
    gone = replace(inputs, codes=new.codes.clip(-1))
    rest = SumKernel((Part(Group((1, 2)), LinearKernel()), Part(Group((), (0,)), RBFKernel(1.0))), (1.0, 1.0))
    first = SumKernel((Part(Group((0,)), LinearKernel()), Part(Group((), (0,)), RBFKernel(1.0))), (1.0, 1.0))
    np.testing.assert_array_equal(rest.diagonal(new), rest.diagonal(gone))
    np.testing.assert_array_equal(first.diagonal(new), first.diagonal(inputs))
    np.testing.assert_array_equal(first.diagonal(gone), first.diagonal(inputs) - 1)
    np.testing.assert_array_equal(gram(first, new, inputs), gram(first, gone, inputs))


def test_cosine_is_zero_where_the_diagonal_is(rng):
    inputs = random_inputs(rng, 4, 0, 3)
    inputs.real[2] = 0
    for dtype in (np.float32, np.float64):
        K = gram(CosineKernel(LinearKernel()), inputs, inputs, dtype)
        assert (K[2] == 0).all() and (K[:, 2] == 0).all()
        np.testing.assert_allclose(np.delete(np.diagonal(K), 2), 1, rtol=1e-6)


# ----------------------------------------------------------------------------- scales

GROUPS = {"word": Group((0,)), "word.suffix3": Group((1, 2)), "f0": Group((), (0, 1)), "rest": Group(bag=True)}
PARTS = (
    KernelConfig("rbf", features=("f0",)),
    KernelConfig("poly", {"degree": 3}, features=("word*", "rest"), weight=2.0),
)


@pytest.mark.parametrize("kind", ["sum", "product"])
def test_composites_have_a_mean_diagonal_of_one(rng, kind):
    inputs = random_inputs(rng, 60, 3, 2, 4)
    kernel = fit_kernel(KernelConfig(kind, parts=PARTS), inputs, 0, GROUPS)
    np.testing.assert_allclose(kernel.diagonal(inputs).mean(), 1, rtol=1e-12)
    assert [part.group for part in kernel.parts] == [Group((), (0, 1)), Group((0, 1, 2), bag=True)]
    alone = inputs.columns(Group((), (0, 1)))
    assert kernel.parts[0].kernel == fit_kernel(KernelConfig("rbf"), alone, 0)
    if kind == "sum":
        np.testing.assert_allclose(kernel.weights[1] / kernel.weights[0], 2, rtol=1e-12)


def test_a_sum_of_linear_kernels_is_the_linear_kernel(rng):
    inputs = random_inputs(rng, 30, 3, 2, 4)
    parts = (KernelConfig("linear", features=("word*",)), KernelConfig("linear", features=("f0", "rest")))
    kernel = fit_kernel(KernelConfig("sum", parts=parts), inputs, 0, GROUPS)
    np.testing.assert_allclose(
        gram(kernel, inputs, inputs), gram(LinearKernel(), inputs, inputs), rtol=1e-12, atol=1e-12
    )


def test_nested_parts_count_columns_within_their_part(rng):
    inputs = random_inputs(rng, 30, 3, 2, 4)
    inner = KernelConfig("product", features=("word.*", "f0"), parts=(KernelConfig("rbf", features=("f0",)),) * 2)
    outer = KernelConfig("sum", parts=(inner, KernelConfig("linear", features=("word",))))
    kernel = fit_kernel(outer, inputs, 0, GROUPS)
    assert kernel.parts[0].group == Group((1, 2), (0, 1))
    assert kernel.parts[0].kernel.parts[0].group == Group((), (0, 1))
    np.testing.assert_allclose(gram(kernel, inputs, inputs), oracle.gram(kernel, inputs, inputs), rtol=1e-11)


def test_a_part_without_features_is_an_error(rng):
    inputs = random_inputs(rng, 30, 3, 2, 4)
    parts = (KernelConfig("linear", features=("wrod",)), KernelConfig("rbf"))
    with pytest.raises(ConfigError, match=r"no feature is called 'wrod' \(did you mean 'word'\?\)"):
        fit_kernel(KernelConfig("sum", parts=parts), inputs, 0, GROUPS, "node")


def test_the_scale_of_an_image_kernel_is_the_median_of_its_distances(rng):
    inputs = random_inputs(rng, 40, 0, 20)
    kernel = fit_kernel(KernelConfig("image", {"shape": (5, 4), "reach": 1, "blur": 1.2}), inputs, 0)
    psi = oracle.neighbourhoods(IMAGE_KERNEL, inputs.real)
    distances = ((psi[:, None] - psi) ** 2).sum(axis=2)[np.triu_indices(40, 1)]
    np.testing.assert_allclose(kernel.gamma, 1 / np.median(distances), rtol=1e-9)
    assert kernel == replace(IMAGE_KERNEL, gamma=kernel.gamma)


def test_pictures_of_another_size_are_refused(rng):
    config = KernelConfig("image", {"shape": (5, 4)})
    with pytest.raises(ConfigError, match="5x4 pixels has 20 real columns, not 19"):
        fit_kernel(config, random_inputs(rng, 4, 0, 19), 0, {}, "node")
    with pytest.raises(ConfigError, match="real columns alone"):
        fit_kernel(config, random_inputs(rng, 4, 1, 20), 0, {}, "node")


def test_rbf_is_its_own_cosine(rng):
    inputs = random_inputs(rng, 10, 0, 2)
    assert isinstance(fit_kernel(KernelConfig("rbf", cosine=True), inputs, 0), RBFKernel)
    assert fit_kernel(KernelConfig("linear", cosine=True), inputs, 0) == CosineKernel(LinearKernel())


# ----------------------------------------------------------------------------- files


@composite
def test_kernels_survive_a_header(rng, kernel):
    stored = json.loads(json.dumps(kernel.to_dict()))
    assert kernel_from_dict(stored, random_inputs(rng, 1, 3, 2, 5)) == kernel


def test_image_kernels_survive_a_header(rng):
    kernel = ImageKernel(0.25, *IMAGE_SETTINGS)
    stored = json.loads(json.dumps(kernel.to_dict()))
    assert kernel_from_dict(stored, random_inputs(rng, 1, 0, 20)) == kernel
    with pytest.raises(ValueError):
        kernel_from_dict(stored, random_inputs(rng, 1, 0, 21))


def deep(levels):
    kernel = {"type": "linear"}
    for _ in range(levels):
        kernel = {"type": "cosine", "kernel": kernel}
    return kernel


PART = {"codes": [0], "real": [], "bag": False, "kernel": {"type": "linear"}}
IMAGE = {"type": "image", "gamma": 1.0, "shape": [2, 1], "reach": 1, "blur": 1.0}


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {"type": ["linear"]},
        {"type": "cosine"},
        {"type": "cosine", "kernel": "linear"},
        deep(2000),
        {"type": "sum", "parts": [], "weights": []},
        {"type": "sum", "parts": [PART], "weights": []},
        {"type": "sum", "parts": [PART], "weights": [-1.0]},
        {"type": "sum", "parts": [PART], "weights": ["1"]},
        {"type": "sum", "parts": {"0": PART}, "weights": [1.0]},
        {"type": "product", "parts": [PART], "scale": float("inf")},
        {"type": "product", "parts": [PART], "scale": 10**400},
        {"type": "product", "parts": [PART | {"codes": [3]}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"codes": [-1]}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"codes": [0, 0]}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"codes": [True]}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"codes": 0}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"bag": True}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"more": 1}], "scale": 1.0},
        {"type": "product", "parts": [PART | {"kernel": IMAGE}], "scale": 1.0},
        IMAGE,
        *(
            {"type": "product", "scale": 1.0, "parts": [PART | {"codes": [], "real": [0, 1], "kernel": IMAGE | change}]}
            for change in (
                {"shape": [1, 1]},
                {"shape": [2]},
                {"shape": 2},
                {"shape": [2.0, 1.0]},
                {"shape": [-2, -1]},
                {"reach": -1},
                {"reach": 10**6},
                {"reach": True},
                {"blur": 0},
                {"blur": float("nan")},
                {"blur": 10**400},
                {"blur": "1"},
                {"gamma": -1.0},
            )
        ),
    ],
)
def test_altered_kernels_are_refused(rng, values):
    with pytest.raises((ValueError, TypeError)):
        kernel_from_dict(values, random_inputs(rng, 1, 3, 2))


# ----------------------------------------------------------------------------- configuration

COMPOSITE = """
terms:
  - kernel:
      type: sum
      parts:
        - {type: rbf, features: [f0], weight: 0.5}
        - type: product
          cosine: true
          features: word*
          parts: [{type: poly, degree: 3}, {type: image, shape: 16x8}]
"""


def test_composites_in_a_configuration():
    config = parse_config(load_yaml(COMPOSITE, "c.yaml"), "c.yaml")
    kernel = config.terms[0].kernel
    assert kernel.parts[0] == KernelConfig("rbf", features=("f0",), weight=0.5)
    assert kernel.parts[1].cosine and kernel.parts[1].parts[1].shape == (16, 8)
    assert parse_config(config.to_dict()) == config
    assert parse_config(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ({"type": "sum"}, "at least two 'parts'"),
        ({"type": "sum", "parts": [{"type": "rbf"}]}, "at least two 'parts'"),
        ({"type": "poly", "parts": [{"type": "rbf"}] * 2}, "'parts' does not belong to the kernel 'poly'"),
        ({"type": "rbf", "features": ["a"]}, "only the parts"),
        ({"type": "product", "parts": [{"type": "rbf", "weight": 2}] * 2}, "'weight' is for the parts of a sum"),
        ({"type": "sum", "parts": [{"type": "rbf", "weight": 0}] * 2}, "greater than 0"),
        ({"type": "sum", "parts": [{"type": "rbf", "gama": 2}] * 2}, "did you mean 'gamma'"),
        ({"type": "sum", "parts": ["rbf", "rbf"]}, "must be a mapping"),
        ({"type": "image"}, "needs the 'shape'"),
        ({"type": "image", "shape": "16"}, "must be rows and columns"),
        ({"type": "image", "shape": [0, 8]}, "must be from 1"),
        ({"type": "image", "shape": "4x4", "reach": 9}, "from 0 to 8"),
        ({"type": "image", "shape": "4x4", "blur": 1e9}, "at most 100"),
        ({"type": "rbf", "shape": "4x4"}, "'shape' does not belong"),
        ({"type": "rbf", "cosine": "yes"}, "true or false"),
    ],
)
def test_wrong_kernels_in_a_configuration(kernel, message):
    with pytest.raises(ConfigError, match=message):
        parse_config({"terms": [{"kernel": kernel}]})


def test_kernels_are_not_nested_without_end():
    kernel = {"type": "linear"}
    for _ in range(5):
        kernel = {"type": "sum", "parts": [kernel, {"type": "linear"}]}
    with pytest.raises(ConfigError, match="nested"):
        parse_config({"terms": [{"kernel": kernel}]})

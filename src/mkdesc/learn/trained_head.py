"""Heads that are trained with PyTorch, as scikit-learn has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mkdesc._support.check import check_choice, check_integer, check_number
from mkdesc._support.optional import needed
from mkdesc._support.parameters import Estimator
from mkdesc._support.progress import Progress, no_progress
from mkdesc.heads.head import Head
from mkdesc.heads.layers import Layers, add_hidden, layers_of, reduced
from mkdesc.heads.statistics import Statistics
from mkdesc.heads.whitening import Whitening
from mkdesc.learn.views import FixedViews, Views
from mkdesc.measures.descriptors import as_descriptors

if TYPE_CHECKING:
    import torch
    from sklearn.utils import Tags

    from mkdesc.learn.training import Trained


#: What is trained, and the size of its steps.
KINDS = {"mlp": 1e-3, "linear": 2e-4}
LOSS_NAMES = ("softmax", "hardest")
#: Steps, and pairs per step, that suit a CPU and a GPU.
STEPS, GPU_STEPS = 2000, 28_000
BATCH, GPU_BATCH = 1024, 2048
#: One point in so many is not trained on, but decides when the head was at its best.
CHECKED = 20
#: Pairs that decide, at most.
MOST_CHECKED = 2048


@dataclass(eq=False, repr=False)
class TrainedHead(Estimator):
    """A head trained on matching descriptors by gradient descent; needs PyTorch.

    It begins as a whitening and only gets better. Training goes on from ``start`` if there is
    one, can be interrupted (Ctrl-C: what was best so far is learned), and gives the same head for
    the same seed on a CPU, unless ``seconds`` ended it.

    Parameters
    ----------
    kind
        ``"mlp"``: a hidden layer beside the projection. ``"linear"``: the projection alone.
    hidden
        Units of the hidden layer.
    rank
        To how many numbers descriptors are taken first, which makes room for more hidden units in
        the same time; None: none are left out.
    steps, seconds
        How long to train, at most (:func:`~mkdesc.learn.learn_model` counts all that it does);
        both None: 2,000 steps on a CPU, 28,000 on a GPU.
    batch
        Pairs per step; None: 1,024 on a CPU, 2,048 on a GPU.
    loss
        ``"softmax"``: each descriptor should find its other half among all of the batch.
        ``"hardest"``: that of HardNet, the nearest wrong one should be farther by a margin.
    device
        Of PyTorch: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; ``"auto"``: a GPU if there is one.
    seed
        Of the hidden layer and of the batches.
    whitening
        What it begins as; default: ``Whitening("gda", power=0.75)``.
    start
        Instead of that, a head that was trained before.

    Attributes
    ----------
    head_ : Head
        What was learned.
    trained_ : Trained
        How that went: steps, losses, whether it was interrupted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat(rng.normal(size=(300, 10)), 2, axis=0)
    >>> X, labels = points + rng.normal(scale=0.1, size=points.shape), np.repeat(np.arange(300), 2)
    >>> head = TrainedHead("mlp", hidden=8, steps=3, whitening=Whitening("gda", dims=4))
    >>> head.fit(X, labels).transform(X).shape, head.head_
    ((600, 4), Head(10 -> 12, relu 4, 12 -> 4, l2))
    """

    kind: str = "mlp"
    hidden: int = 512
    rank: int | None = None
    steps: int | None = None
    seconds: float | None = None
    batch: int | None = None
    loss: str = "softmax"
    device: str = "auto"
    seed: int = 0
    whitening: Whitening | None = None
    start: Head | None = None
    head_: Head = field(init=False)
    trained_: Trained[Layers] = field(init=False)

    def fit(self, X: ArrayLike, y: ArrayLike, progress: Progress = no_progress) -> Self:
        """Learn from raw descriptors (N, D) and labels (N,) of what they show.

        Parameters
        ----------
        X
            Raw descriptors.
        y
            Equal labels match; points with a single one are left out.
        progress
            Told of the steps.
        """
        self.check()
        X = as_descriptors(X, name="X", keep_float=True)
        labels = np.asarray(y)
        if labels.shape != (len(X),):
            raise ValueError(f"y: expected ({len(X)},), got {labels.shape}")
        point_of = np.unique(labels, return_inverse=True)[1]
        if point_of.size == 0 or point_of.max() < 1:
            raise ValueError(f"y: expected at least two labels, got {len(np.unique(labels))}")
        whitening = self.effective_whitening()
        statistics = Statistics(X.shape[1], whitening.power).update(X, point_of)
        training, checking = split_points(point_of, np.arange(len(X)), int(self.seed))
        raw = X.astype(np.float32, copy=False)
        return self.fit_views(
            FixedViews(raw, point_of, training),
            FixedViews(raw, point_of, checking),
            statistics,
            progress,
        )

    def fit_views(
        self,
        views: Views,
        check: Views,
        statistics: Statistics,
        progress: Progress = no_progress,
        threads: int | None = None,
    ) -> Self:
        """Learn from any views.

        Parameters
        ----------
        views, check
            Of points that are trained on, and of others that say how good it is.
        statistics
            Of the same kind of descriptors, of the power of the whitening.
        progress
            Told of the steps.
        threads
            How many PyTorch may use on a CPU; None: as many as it likes.
        """
        self.check()
        device = self.chosen_device()
        from mkdesc.learn.network import train_network
        from mkdesc.learn.training import torch_threads

        for part, name in ((views, "train on"), (check, "check with")):
            if part.points < 2:
                raise ValueError(
                    f"X: too few points to {name}: expected at least 2 with two views each, got "
                    f"{part.points}"
                )
        few = min(MOST_CHECKED, check.points)
        limited = self.steps is not None or self.seconds is not None
        seed = int(self.seed)
        pairs = check.batch(few, np.random.default_rng([seed, 3]))
        layers = self._first_layers(statistics, np.random.default_rng([seed, 0]))
        with torch_threads(threads):
            self.trained_ = train_network(
                layers,
                views,
                pairs,
                batch=self.effective_batch(),
                rate=KINDS[self.kind],
                loss=self.loss,
                device=str(device),
                seed=seed,
                steps=self.steps if limited else (STEPS if device.type == "cpu" else GPU_STEPS),
                seconds=self.seconds,
                progress=progress,
            )
        self.head_ = self.trained_.best.head()
        return self

    def _first_layers(self, statistics: Statistics, rng: np.random.Generator) -> Layers:
        """What training begins with."""
        head = self.start
        if head is None:
            whitening = self.effective_whitening()
            dims = whitening.dims
            if self.rank is not None:
                whitening.dims = self.rank
            head = whitening.fit_statistics(statistics).learned()
            if self.rank is not None:
                head = reduced(head, min(dims, head.dims_out))
        elif head.dims_in != statistics.dims:
            raise ValueError(
                f"start: takes {head.dims_in} numbers, the descriptors have {statistics.dims}"
            )
        layers = layers_of(head, statistics.covariance)
        if self.kind == "linear":
            if layers.hidden:
                raise ValueError(f"start: expected a linear head to train as one, got {head}")
            return layers
        return layers if layers.hidden else add_hidden(layers, self.hidden, rng)

    def facts(self) -> dict[str, Any]:
        """How it was trained, as plain values, for the card of a model."""
        whitening = self.effective_whitening()
        began = whitening.method if self.start is None else str(self.start)
        found: dict[str, Any] = {"head": self.kind, "began_as": began, "loss": self.loss}
        if self.kind == "mlp":
            found["hidden"] = self.trained_.best.hidden
        if self.rank is not None:
            found["rank"] = self.rank
        found |= {"ridge": whitening.ridge, "power": whitening.power}
        found |= {"batch": self.effective_batch(), "device": str(self.chosen_device())}
        return found | {"training_seed": int(self.seed)}

    def effective_whitening(self) -> Whitening:
        """A copy of the whitening that it begins as."""
        chosen = Whitening("gda", power=0.75) if self.whitening is None else self.whitening
        return Whitening(**chosen.get_params())

    def effective_batch(self) -> int:
        """How many pairs there are in a step."""
        if self.batch is not None:
            return self.batch
        return BATCH if self.chosen_device().type == "cpu" else GPU_BATCH

    def chosen_device(self) -> torch.device:
        """The device of PyTorch; an error if there is none."""
        from mkdesc._support.launching import chosen_device

        with needed("training a head needs PyTorch", "torch"):
            import torch  # noqa: F401
        return chosen_device(None if self.device == "auto" else self.device)

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Map raw descriptors (N, D) to unit vectors (N, dims), float32."""
        if not hasattr(self, "head_"):
            raise self._not_fitted()
        return self.head_.apply(
            as_descriptors(X, name="X", dims=self.head_.dims_in, keep_float=True)
        )

    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.float32]:
        """Learn from descriptors and map them."""
        return self.fit(X, y).transform(X)

    def check(self) -> None:
        """Refuse bad parameters."""
        check_choice("kind", self.kind, KINDS)
        check_choice("loss", self.loss, LOSS_NAMES)
        check_integer("hidden", self.hidden)
        check_integer("rank", self.rank, optional=True)
        check_integer("steps", self.steps, optional=True)
        check_integer("batch", self.batch, 2, optional=True)
        check_number("seconds", self.seconds, above=0, optional=True)
        check_integer("seed", self.seed, 0)
        if not isinstance(self.device, str):
            raise ValueError(f"device: expected text, got {self.device!r}")
        if self.whitening is not None and not isinstance(self.whitening, Whitening):
            raise ValueError(f"whitening: expected a Whitening or None, got {self.whitening!r}")
        if self.start is not None and not isinstance(self.start, Head):
            raise ValueError(f"start: expected a Head or None, got {self.start!r}")
        self.effective_whitening().check()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "head_")

    def __sklearn_tags__(self) -> Tags:
        return self._tags(needs_y=True)


def split_points(
    point_of: NDArray[np.integer], rows: NDArray[np.integer], seed: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Rows whose points are trained on, and those whose points check it: one in twenty.

    >>> training, checking = split_points(np.repeat(np.arange(40), 2), np.arange(80), 0)
    >>> len(training), len(checking)
    (76, 4)
    """
    points, counts = np.unique(point_of[rows], return_counts=True)
    points = points[counts > 1]
    chosen = np.random.default_rng([seed, 2]).permutation(points)[: max(2, len(points) // CHECKED)]
    checking = np.isin(point_of[rows], chosen)
    return rows[~checking], rows[checking]

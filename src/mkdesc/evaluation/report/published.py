"""Numbers that others published, to stand beside ours. In per cent, all of them.

From A. Mukundan, G. Tolias, O. Chum, "Multiple-Kernel Local-Patch Descriptor", BMVC 2017, Tables
1, 2 and 4 (where it cites the HPatches article, CVPR 2017, for the rivals); and from the pages of
"UBC Phototour Revisited" (D. Mishkin, 2020).
"""

from __future__ import annotations

#: The seven rows of Tables 1 and 2: the descriptor's name here, and in the paper.
PAPER_ROWS = {
    "mkd-polar-raw": "polar",
    "mkd-cartesian-raw": "cartesian",
    "mkd-raw": "polar + cartesian",
    "mkd-polar-raw+pca": "polar + PCA",
    "mkd-polar-raw+lw": "polar + LW",
    "mkd-cartesian-raw+lw": "cartesian + LW",
    "mkd-raw+lw": "polar + cartesian + LW",
}

_LIBERTY, _NOTREDAME, _YOSEMITE = "liberty", "notredame", "yosemite"
#: (test, train) in the order of the columns of Table 1.
_COLUMNS = (
    (_LIBERTY, _NOTREDAME),
    (_LIBERTY, _YOSEMITE),
    (_NOTREDAME, _LIBERTY),
    (_NOTREDAME, _YOSEMITE),
    (_YOSEMITE, _NOTREDAME),
    (_YOSEMITE, _LIBERTY),
)


def _by_column(*values: float) -> dict[tuple[str, str], float]:
    return dict(zip(_COLUMNS, values, strict=True))


#: Table 1: FPR95 by descriptor and (test, train).
TABLE_1 = {
    "mkd-polar-raw": _by_column(24.34, 24.34, 16.06, 16.06, 26.85, 26.85),
    "mkd-cartesian-raw": _by_column(34.06, 34.06, 34.10, 34.10, 39.47, 39.47),
    "mkd-raw": _by_column(26.16, 26.16, 20.04, 20.04, 29.91, 29.91),
    "mkd-polar-raw+pca": _by_column(12.09, 13.13, 5.16, 5.41, 7.52, 6.49),
    "mkd-polar-raw+lw": _by_column(8.55, 10.48, 4.40, 3.94, 8.86, 6.12),
    "mkd-cartesian-raw+lw": _by_column(17.31, 20.34, 10.90, 11.85, 16.84, 13.55),
    "mkd-raw+lw": _by_column(7.44, 9.84, 3.48, 3.54, 6.56, 5.02),
}

#: Phototour Revisited: mean AP by descriptor and (test, train).
REVISITED = {
    "mkd-raw+lw": _by_column(61.94, 60.35, 61.90, 59.95, 73.15, 73.36),
    "mkd-polar-raw+lw": _by_column(64.05, 62.87, 63.59, 62.13, 73.97, 73.95),
}

TASKS = ("verification", "matching", "retrieval")

#: Table 2: mean average precision by descriptor, for the three tasks.
TABLE_2 = {
    "mkd-polar-raw": (80.77, 32.51, 48.04),
    "mkd-cartesian-raw": (70.67, 15.79, 30.73),
    "mkd-raw": (77.97, 29.34, 44.23),
    "mkd-polar-raw+pca": (87.11, 38.45, 54.81),
    "mkd-polar-raw+lw": (88.00, 41.91, 58.80),
    "mkd-cartesian-raw+lw": (85.13, 33.77, 52.94),
    "mkd-raw+lw": (88.64, 43.81, 61.21),
}

#: Table 4, left: the six best of all methods, by task. PCW: polar + cartesian + LW learned on
#: Liberty; PCW*: learned on HPatches; "+": ZCA.
TABLE_4_ALL = {
    "verification": {
        "TF-R": 81.92,
        "+TF-M": 82.69,
        "PCW": 82.94,
        "+DC-S2S": 83.03,
        "+TF-R": 83.24,
        "PCW*": 88.64,
    },
    "matching": {
        "PCW": 33.69,
        "+TF-M": 34.29,
        "+TF-R": 34.37,
        "+DDESC": 35.44,
        "+RSIFT": 36.77,
        "PCW*": 43.81,
    },
    "retrieval": {
        "+TF-R": 40.23,
        "+SIFT": 40.36,
        "+RSIFT": 43.84,
        "+DDESC": 44.55,
        "PCW": 48.26,
        "PCW*": 61.21,
    },
}

#: Table 4, right: the six best that have used no part of HPatches for training.
TABLE_4_OTHERS = {
    "verification": {
        "DC-S": 70.04,
        "DC-S2S": 78.23,
        "DDESC": 79.51,
        "TF-M": 81.90,
        "TF-R": 81.92,
        "PCW": 82.94,
    },
    "matching": {
        "RSIFT": 27.22,
        "DC-S2S": 27.69,
        "DDESC": 28.05,
        "TF-R": 30.61,
        "TF-M": 32.64,
        "PCW": 33.69,
    },
    "retrieval": {
        "DC-S2S": 34.76,
        "DC-S": 34.84,
        "TF-R": 37.69,
        "TF-M": 39.40,
        "DDESC": 39.83,
        "PCW": 48.26,
    },
}

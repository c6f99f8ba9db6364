"""Data frames of pandas, which is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def make_dataframe(columns: Mapping[str, Any]) -> pd.DataFrame:
    """A data frame of these columns.

    >>> make_dataframe({"x": [1, 2]}).shape
    (2, 1)
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from error
    return pd.DataFrame(columns)

"""Whether two photographs show the same: a pair, evidence, one table of checks, a verdict.

May use: _support, geometry, images, matching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mkdesc._support.lazy import lazy_names

if TYPE_CHECKING:  # lazy_names imports these when they are used
    from mkdesc.belief.checks import CHECKS as CHECKS
    from mkdesc.belief.judgement import Judged as Judged
    from mkdesc.belief.judgement import Verdict as Verdict
    from mkdesc.belief.judgement import judge as judge
    from mkdesc.belief.pair import PhotoPair as PhotoPair

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

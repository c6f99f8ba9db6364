"""The explorer: a page in which kernels, patch maps and two patches can be played with.

``server`` serves it, ``page`` builds it (also as one file), ``data`` is what Python hands to it,
``uploads`` reads what comes back. All that is computed while one drags is computed in the browser,
by ``static/kernels.js`` and ``static/patches.js``.
"""

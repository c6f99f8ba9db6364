"""Matches that the photographs confirm: refined by their gray values, and grown from there.

==============  =================================================================================
``pyramid``     photographs at several resolutions
``reference``   the definition of one fit, in numpy, with its derivation
``fitting``     many fits, compiled; ``fitting_torch``: on a device
``rounds``      matches predict their neighbours, which are fitted, and predict in turn
``growth``      from one photograph: seeds, rounds, one more fit, there and back
``grow``        from both, one match for each place
``dense``       to every place of a grid
``refine``      fits of pairs of keypoints, and no growth
==============  =================================================================================
"""

"""Matches that the photographs confirm: refined by their gray values, and grown from there.

=================  ==============================================================================
``pyramid``        photographs at several resolutions
``reference``      the definition: one fit, in numpy, as the text has it
``fitting``        many fits, compiled
``grow``           matches that fit predict their neighbours, from both photographs
=================  ==============================================================================
"""

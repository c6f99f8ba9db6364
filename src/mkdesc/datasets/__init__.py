"""Readers and writers of the formats that patches come in."""

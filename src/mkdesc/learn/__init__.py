"""Where matching pairs come from."""

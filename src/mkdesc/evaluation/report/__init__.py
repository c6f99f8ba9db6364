"""What came of a run: tables, plots, files, runs side by side, and what others published."""

"""What finds keypoints: a module for each detector, named in ``registry.py``."""

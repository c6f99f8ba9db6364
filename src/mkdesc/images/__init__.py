"""From image files to keypoints and patches (needs OpenCV: ``pip install mkdesc[images]``)."""

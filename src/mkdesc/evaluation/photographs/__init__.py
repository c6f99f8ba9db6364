"""Local features judged on whole photographs: homographies, relative poses, modern rivals."""

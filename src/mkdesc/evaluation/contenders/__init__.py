"""Named descriptors: ours, OpenCV's, kornia's, files of others, and any Python callable."""

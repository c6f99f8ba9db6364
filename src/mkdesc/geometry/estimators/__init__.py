"""One file for each kind of geometry, all by PoseLib; and one for all kinds by OpenCV."""

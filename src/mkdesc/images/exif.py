"""What the EXIF data of a photograph say of its camera."""

from __future__ import annotations

from io import BytesIO

from mkdesc.images.reading import open_image

#: Width of the film that "in 35 mm" means, in millimetres.
_FILM = 36.0
_EXIF_FOLDER, _FOCAL_IN_35MM = 0x8769, 0xA405


def focal_length(data: bytes, longer: int) -> float | None:
    """The focal length in pixels that an image file states, if it does.

    Parameters
    ----------
    data
        Of the file.
    longer
        Pixels of the longer side of the photograph.

    Returns
    -------
    float or None
        From the focal length in terms of 35 mm film; None if there is none.
    """
    try:
        image = open_image(BytesIO(data))
        if "exif" not in image.info:  # getexif would decode a whole PNG file to look behind it
            return None
        found = image.getexif().get_ifd(_EXIF_FOLDER).get(_FOCAL_IN_35MM)
    except Exception:  # whatever damaged data make Pillow raise
        return None
    return found * longer / _FILM if isinstance(found, int) and found > 0 else None

"""One image file decoded: upright, in colour or grey."""

import io
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from resmlp_mt.errors import UserError

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
# Pillow only warns of more pixels than this. It refuses twice as many.
_MAX_PIXELS = 1024**3 // 4 // 3
# JPEG's own limit. Pillow takes 30 bytes for every line, whatever the width.
_MAX_SIDE = 2**16 - 1
# A progressive JPEG has ten or so. Each goes over all pixels, though it may have few bytes.
_MAX_SCANS = 50
# The marker at the start of a part of a JPEG. No part holds one.
_MARKER = re.compile(rb"\xff([\xc0-\xcf\xd9-\xfe])")


class BrokenImage(UserError):
    """A file that holds no image, or not a whole one."""


def decode(source: bytes | str | Path | BinaryIO, in_chans: int, name: str) -> Image.Image:
    """Decode an image file: its first frame, upright, over white where it is transparent.

    Args:
        source: The file, read from its start where it is open, or its bytes.
        in_chans: 3 for mode "RGB", 1 for mode "L".
        name: Of the file, in messages.

    Raises:
        BrokenImage: If it cannot be read, or is not a whole PNG, JPEG, GIF or WebP image.
    """
    try:
        data = source if isinstance(source, bytes) else _read(source)
        if not data:
            raise ValueError("empty file")
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            pixels, side = image.width * image.height, max(image.size)
            if not pixels:
                raise ValueError(f"{image.width} x {image.height} pixels")
            if pixels > _MAX_PIXELS or side > _MAX_SIDE:
                raise Image.DecompressionBombError
            if data.startswith(b"\xff\xd8") and (scans := _count_scans(data)) > _MAX_SCANS:
                raise ValueError(f"{scans:,} scans")
            if image.format == "PNG" and image.mode == "L" and "transparency" in image.info:
                # Of grey in 2 and 4 bits, as byte 24 says, Pillow scales all values but this.
                image.info["transparency"] *= 255 // (2 ** data[24] - 1)
            image.load()
            return convert(turn_upright(image, in_place=True), in_chans)
    except UnidentifiedImageError:
        fault = "not PNG, JPEG, GIF or WebP; convert or remove it"
    except Image.DecompressionBombError:
        millions = _MAX_PIXELS // 10**6
        fault = f"more than {millions} million pixels, or {_MAX_SIDE:,} a side; make it smaller"
    except Exception as error:  # hostile bytes bring almost any of them out of Pillow
        if not (fault := getattr(error, "strerror", None)):  # of files that cannot be read
            reason = " ".join(str(error).split()) or type(error).__name__
            fault = f"broken image ({reason}); copy the file again or remove it"
    raise BrokenImage(f"{name}: {fault}")


def _read(source: str | Path | BinaryIO) -> bytes:
    if not hasattr(source, "read"):
        return Path(source).read_bytes()
    with suppress(AttributeError, OSError):  # a pipe has no start
        source.seek(0)  # as Pillow does; whoever wrote or read it has left it at its end
    return source.read()


def _count_scans(data: bytes) -> int:
    """Scans of a JPEG. Each goes over all of its pixels."""
    scans, place = 0, 2
    while (marker := _MARKER.search(data, place)) and marker[1] != b"\xd9":  # the end
        scans += marker[1] == b"\xda"
        place = marker.end() + int.from_bytes(data[marker.end() : marker.end() + 2], "big")
    return scans


def turn_upright(image: Image.Image, in_place: bool = False) -> Image.Image:
    """Turn an image as its EXIF metadata says. `in_place` spares a copy of a large one."""
    with suppress(Exception):  # metadata that cannot be read turns nothing
        turned = ImageOps.exif_transpose(image, in_place=in_place) or image
        turned.format = image.format  # `convert` asks for it, and copies have none
        return turned
    return image


def convert(image: Image.Image, in_chans: int) -> Image.Image:
    """Bring an image to "RGB" for 3 channels, or "L" for 1.

    Mode "I" counts as 16 bits where it comes from a file that holds no more, PNG or PGM.

    Raises:
        ValueError: If it is in mode "F", in another "I", or in a mode that Pillow cannot convert.
    """
    mode = "RGB" if in_chans == 3 else "L"
    if image.mode == "F" or (image.mode == "I" and image.format not in ("PNG", "PPM")):
        # By its values, a dark picture of 16 bits would be taken for one of 8.
        raise ValueError(
            f"mode {image.mode} does not say which value is white; scale it to 8 bits, mode L"
        )
    if image.mode.startswith("I"):  # 16 bits, which convert() may clip; of RGB it keeps the upper 8
        values = np.asarray(image)
        grey = np.clip(values >> 8, 0, 255).astype(np.uint8)
        grey[values == image.info.get("transparency", -1)] = 255
        return Image.fromarray(grey).convert(mode)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image if image.mode == mode else image.convert(mode)

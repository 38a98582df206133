"""Pictures that users' functions draw, as part of the page; the one file of the report that needs Pillow."""

import base64
import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from counterpoint.core.arrays import Array, Bools
from counterpoint.core.transitions import Transitions
from counterpoint.report.markup import Html, text
from counterpoint.report.options import DrawFn

MOST_PIXELS = 320  # on the longer side


def picture(draw: DrawFn, row: Transitions, mask: Bools, alt: str, most: int = MOST_PIXELS) -> Html:
    """Return an image element with a drawing of one transition.

    Args:
        draw: the user's function.
        row: a batch of one.
        mask: (N, n) its graph.
        alt: what it shows, for those who cannot see it.
        most: pixels on the longer side.
    """
    hidden = (row.noise[0],) if getattr(draw, "uses_noise", False) and row.noise is not None else ()
    drawing: Callable[..., object] = draw
    image = Image.fromarray(_pixels(drawing(row.state[0], row.action[0], mask, *hidden)))
    image.thumbnail((most, most))
    out = io.BytesIO()
    image.quantize(64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    data = base64.b64encode(out.getvalue()).decode()
    return Html(
        f'<img src="data:image/png;base64,{data}" alt="{text(alt)}" width="{image.width}" height="{image.height}">'
    )


def _pixels(drawn: object) -> Array:
    pixels = np.asarray(drawn)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(
            f"draw: expected a picture, uint8 of shape (height, width, 3), got {pixels.dtype} {pixels.shape}."
        )
    return np.ascontiguousarray(pixels)

"""Images made small enough to travel inside the page."""

from __future__ import annotations

import base64
import io

from PIL import Image
from torch import Tensor


def data_uri(pixels: Tensor) -> str:
    """An image, uint8 (3, h, w), as a URI that holds it."""
    buffer = io.BytesIO()
    Image.fromarray(pixels.permute(1, 2, 0).contiguous().numpy()).save(buffer, format="WEBP", quality=88, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"

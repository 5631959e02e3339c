"""Images that were sent, remembered for a while so that a page need not send them again."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict

from PIL import Image

from homunculus.image import load
from homunculus.studio.uploads import Limits, RequestError, Upload, pages_of

REMEMBERED = 256 << 20  # bytes of all images


class Store:
    """The last images, in memory alone; what was longest unused goes first."""

    def __init__(self, limits: Limits, most: int = REMEMBERED) -> None:
        self.limits, self.most = limits, most
        self.kept: OrderedDict[str, bytes] = OrderedDict()
        self.lock = threading.Lock()

    def add(self, upload: Upload) -> int:
        """Remember an image; how many pages it has."""
        count = pages_of(upload.content, self.limits)
        with self.lock:
            self.kept[upload.mark] = upload.content
            self.kept.move_to_end(upload.mark)
            while len(self.kept) > 1 and sum(map(len, self.kept.values())) > self.most:
                self.kept.popitem(last=False)
        return count

    def get(self, mark: str) -> Upload:
        """An image by its mark."""
        with self.lock:
            if mark not in self.kept:
                raise RequestError("this image is not remembered any more; send it again", 404)
            self.kept.move_to_end(mark)
            return Upload(self.kept[mark], mark)

    def picture(self, mark: str, page: int, side: int) -> bytes:
        """A page as WebP, no larger than `side` either way."""
        pixels = load(self.get(mark).content, page=page, max_pixels=self.limits.pixels)
        picture = Image.fromarray(pixels.permute(1, 2, 0).numpy())
        picture.thumbnail((side, side))
        return webp(picture)


def webp(picture: Image.Image) -> bytes:
    """A picture in a form that browsers show."""
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=85)
    return file.getvalue()

"""Images that were sent, remembered for a while so that a page need not send them again."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256

from PIL import Image

from homunculus.studio.files import check_page, pages_of, read
from homunculus.studio.uploads import Limits, RequestError

REMEMBERED = 256 << 20  # bytes of all images


@dataclass(frozen=True)
class Upload:
    """An image as it came, its mark, and how many pages it has."""

    content: bytes
    mark: str  # the same bytes, the same mark
    pages: int

    @classmethod
    def of(cls, content: bytes, page: int, limits: Limits) -> Upload:
        """A file that can be taken and has this page; its pixels are still unseen."""
        return cls(content, sha256(content).hexdigest(), pages_of(content, page, limits))


@dataclass(frozen=True)
class Kept:
    """A remembered image, and the size of its first page."""

    upload: Upload
    width: int
    height: int

    def about(self) -> dict[str, str | int]:
        """What its sender is told."""
        return {"id": self.upload.mark, "pages": self.upload.pages, "width": self.width, "height": self.height}


class Store:
    """The last images, in memory alone; what was longest unused goes first."""

    def __init__(self, limits: Limits, most: int = REMEMBERED) -> None:
        self.limits, self.most = limits, most
        self.kept: OrderedDict[str, Kept] = OrderedDict()
        self.lock = threading.Lock()

    def add(self, upload: Upload) -> Kept:
        """Remember an image, if its first page can be decoded."""
        pixels = read(upload.content, 0, self.limits)
        kept = Kept(upload, pixels.shape[2], pixels.shape[1])
        with self.lock:
            self.kept[upload.mark] = kept
            self.kept.move_to_end(upload.mark)
            while len(self.kept) > 1 and sum(len(each.upload.content) for each in self.kept.values()) > self.most:
                self.kept.popitem(last=False)
        return kept

    def get(self, mark: str) -> Kept:
        """An image by its mark."""
        with self.lock:
            if mark not in self.kept:
                raise RequestError("this image is not remembered any more; send it again", 404)
            self.kept.move_to_end(mark)
            return self.kept[mark]

    def picture(self, mark: str, page: int, side: int) -> bytes:
        """A page as WebP, no larger than `side` either way."""
        upload = self.get(mark).upload
        check_page(page, upload.pages)
        pixels = read(upload.content, page, self.limits)
        return webp(Image.fromarray(pixels.permute(1, 2, 0).numpy()), side)


def webp(picture: Image.Image, side: int) -> bytes:
    """A picture no larger than `side` either way, in a form that browsers show."""
    picture.thumbnail((side, side))
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=85)
    return file.getvalue()

"""Images that were sent, kept for a while so that they need not be sent again."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from hashlib import sha256

from PIL import Image

from homunculus.runtime.cache import LRUCache
from homunculus.studio.files import check_page, pages_of, read
from homunculus.studio.uploads import Limits, RequestError

MAX_BYTES = 256 << 20  # of all images


@dataclass(frozen=True)
class Upload:
    """An image as it came, its id, and how many pages it has."""

    content: bytes
    image_id: str  # the same bytes have the same id
    pages: int

    @classmethod
    def of(cls, content: bytes, page: int, limits: Limits) -> Upload:
        """A file that can be taken and has this page; nothing of it is decoded."""
        return cls(content, sha256(content).hexdigest(), pages_of(content, page, limits))


@dataclass(frozen=True)
class StoredImage:
    """An image that is kept, and the size of its first page."""

    upload: Upload
    width: int
    height: int

    def about(self) -> dict[str, str | int]:
        """As JSON."""
        return {"id": self.upload.image_id, "pages": self.upload.pages, "width": self.width, "height": self.height}


class Store:
    """The last images, in memory alone; the least recently used go first."""

    def __init__(self, limits: Limits, max_bytes: int = MAX_BYTES) -> None:
        self.limits = limits
        self.kept = LRUCache[str, StoredImage](max_bytes, lambda image: len(image.upload.content))
        self.lock = threading.Lock()

    def add(self, upload: Upload) -> StoredImage:
        """Keep an image, if its first page can be decoded."""
        pixels = read(upload.content, 0, self.limits)
        kept = StoredImage(upload, pixels.shape[2], pixels.shape[1])
        with self.lock:
            self.kept[upload.image_id] = kept
        return kept

    def get(self, image_id: str) -> StoredImage:
        """An image by its id."""
        with self.lock:
            if image_id not in self.kept:
                raise RequestError("this image is not kept any more; send it again", 404)
            return self.kept[image_id]

    def picture(self, image_id: str, page: int, side: int) -> bytes:
        """A page as WebP, no larger than `side` either way."""
        upload = self.get(image_id).upload
        check_page(page, upload.pages)
        pixels = read(upload.content, page, self.limits)
        return webp(Image.fromarray(pixels.permute(1, 2, 0).numpy()), side)


def webp(picture: Image.Image, side: int) -> bytes:
    """A picture no larger than `side` either way, in a form that browsers show."""
    picture.thumbnail((side, side))
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=85)
    return file.getvalue()

"""Images too large to decode: tiles on demand, trees of up to 20 levels expanded only where it pays.

`open_tiled` opens such a file; `Eye.look` takes it, or its path, as any other image.
"""

from homunculus.giga.glance import GiantGlance
from homunculus.giga.look import expand_tiles, overview_of
from homunculus.giga.tiled import TiledImage, open_tiled, tiled_instead

__all__ = ["GiantGlance", "TiledImage", "expand_tiles", "open_tiled", "overview_of", "tiled_instead"]

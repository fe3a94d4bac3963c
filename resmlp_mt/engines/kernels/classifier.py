"""An exported classifier in compiled code.

In 8 bits each patch is quantized with a scale of its own, so an image gets the same logits in any
batch.

Shapes: B images, N patches, C channels, K classes.
"""

import ctypes
import os
from collections import defaultdict
from concurrent.futures import Future
from threading import Lock, Thread

import numpy as np

from resmlp_mt.engines.kernels.library import Integer, find_library, load_function
from resmlp_mt.engines.kernels.structures import STRUCTURES
from resmlp_mt.engines.kernels.weights import BLOCK, Weights, read_number


class ClassifierKernel:
    """Pixels to logits.

    Args:
        described: From `describe_classifier`.
        arrays: The weights that it names.
        in_chans, image_size: Of the pixels, as the export's `Cut` makes them.
        classes: K.
        threads: How many work on a batch.

    Raises:
        ValueError: If something does not fit.
        UserError: If there is no compiled code, or it is of an older build.
    """

    def __init__(
        self,
        described: dict,
        arrays: dict[str, np.ndarray],
        in_chans: int,
        image_size: int,
        classes: int,
        threads: int,
    ):
        self._compute = load_function("classify", "Block", "Classifier", "Batch")
        self._weights, self._threads = (weights := Weights(arrays)), threads
        # One for each process: a forked one may have its parent's lock, locked for ever.
        self._locks: defaultdict[int, Lock] = defaultdict(Lock)
        self._shape, self._classes = (in_chans, image_size, image_size), classes
        hidden, patch = described["hidden"], described.get("patch")
        if patch is None:  # format 5 has a kernel of that size instead
            patch = arrays[described["embed"]["weight"]].shape[-1]
        for size in (hidden, patch):
            if type(size) is not int or size < 1:
                raise ValueError(f"{size!r:.40} is no size")
        if image_size % patch:
            raise ValueError(f"patches of {patch} in {image_size} pixels")
        channels = arrays[described["centred"]["weight"]].shape[-1]
        patches = (image_size // patch) ** 2
        sizes = channels, hidden
        self._blocks = self._read(described["blocks"], patches, patches, *sizes)
        self._layers = self._read(described["layers"], 1, patches, *sizes)
        embedding = described["embedding"]
        self._zeros = np.zeros(channels + -channels % BLOCK, np.float32)
        self._ones = np.ones_like(self._zeros)
        self._struct = STRUCTURES["Classifier"](
            patches,
            channels,
            hidden,
            classes,
            in_chans,
            image_size,
            patch,
            len(self._blocks),
            len(self._layers),
            ctypes.addressof(self._blocks),
            ctypes.addressof(self._layers),
            embedding and weights.take(embedding, (channels,), BLOCK),
            self._zeros.ctypes.data,
            self._ones.ctypes.data,
            read_number(described["norm"]),
            weights.pack(described["centred"], (in_chans * patch * patch, channels)),
            weights.pack(described["head"], (channels, classes)),
        )
        self._room = (threads + 1) * find_library().count_classifier_room(
            ctypes.byref(self._struct)
        )

    def _read(self, layers: list[dict], rows: int, patches: int, channels: int, hidden: int):
        """Blocks whose A has so many rows."""
        found = (STRUCTURES["Block"] * len(layers))()
        for block, parts in zip(found, layers, strict=True):
            take = self._weights.take
            block.norm, norm = map(read_number, parts["norms"])
            block.matrix = take(parts["matrix"], (rows, patches))
            block.scale = take(parts["scale"], (channels,), BLOCK)
            block.offset = take(parts["offset"], (rows, channels), BLOCK)
            block.mlp = self._weights.pack_mlp(norm, parts, channels, hidden)
        return found

    def __call__(self, pixels: np.ndarray) -> np.ndarray:
        """uint8 (B, in_chans, rows, columns) -> (B, K).

        Raises:
            ValueError: If the pixels have another shape or type.
        """
        if pixels.shape[1:] != self._shape or pixels.dtype != np.uint8:
            raise ValueError(f"pixels {pixels.shape} in {pixels.dtype}, not (B, {self._shape})")
        pixels = np.ascontiguousarray(pixels)
        logits = np.empty((len(pixels), self._classes + -self._classes % BLOCK), np.float32)
        room = np.empty(self._room, np.uint8)
        places = [array.ctypes.data for array in (pixels, logits)]
        sizes = len(pixels), self._threads
        batch = STRUCTURES["Batch"](*sizes, *places, 0, 0, room.ctypes.data)
        batch.kept = pixels, logits, room  # Threads use them even if nobody waits any more.
        # One batch at a time, lest threads that wait for each other take turns with others.
        with self._locks[os.getpid()]:
            self._compute_together(ctypes.byref(self._struct), ctypes.byref(batch))
        return logits[:, : self._classes]

    def _compute_together(self, *call) -> None:
        """Compute a batch with all threads, of which this is one."""
        ready: Future[bool] = Future()  # None begins unless all can: they wait for each other.

        def work(number: int) -> None:
            if ready.result():
                self._compute(*call, Integer(number))

        others = [Thread(target=work, args=(number,)) for number in range(1, self._threads)]
        try:
            for thread in others:
                thread.start()
        except BaseException:
            ready.set_result(False)
            raise
        ready.set_result(True)
        work(0)
        for thread in others:
            thread.join()

"""Mutations of pictures and of archives: their bytes, chunks and headers."""

import struct
import zlib
from random import Random

from hostile.mutate import mutate_bytes

_BOMB = zlib.compress(bytes(50_000_000))
_CHUNKS = b"zTXt iCCP iTXt tEXt eXIf tRNS PLTE acTL fcTL fdAT IDAT IEND".split()
# Of a tar's header: where a name, numbers, the kind, a link's name and others begin and end.
_FIELDS = ((0, 100), (124, 136), (136, 148), (156, 157), (157, 257), (257, 265), (345, 500))
_SIZES = (b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"-1".ljust(12))
_NAMES = (b"../../etc/passwd", b"/etc/passwd", b"train", b"train/class0/link.png", b"\xff\xfe")
_KINDS = b"0 1 2 3 5 L K x g S".split()
_SCAN = b"\xff\xda"


def mutate_chunks(rng: Random, data: bytes) -> bytes:
    """Change a chunk of a PNG and set its checksum right; bytes of anything else."""
    if not data.startswith(b"\x89PNG"):
        return mutate_bytes(rng, data)
    chunks, place = [], 8
    while place + 12 <= len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        chunks.append([data[place + 4 : place + 8], data[place + 8 : place + 8 + size]])
        place += 12 + size
    for _ in range(rng.choice((1, 1, 2, 4))):
        chunk = rng.choice(chunks)
        how = rng.randrange(4)
        if how == 0:
            chunks.insert(rng.randrange(len(chunks) + 1), list(rng.choice(chunks)))
        elif how == 1:
            chunk[0] = rng.choice(_CHUNKS)
        elif how == 2:
            chunk[1] = mutate_bytes(rng, chunk[1])
        else:  # text of a kilobyte that unpacks to a thousand
            chunks.insert(1, [rng.choice((b"zTXt", b"iCCP")), b"x\0\0" + _BOMB])
    return data[:8] + b"".join(
        struct.pack(">I", len(content))
        + name
        + content
        # The checksum.
        + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def mutate_scans(rng: Random, data: bytes) -> bytes:
    """Repeat the last scan of a JPEG, which goes over all pixels; change bytes of others."""
    if not data.startswith(b"\xff\xd8"):
        return mutate_bytes(rng, data)
    last = data.rindex(_SCAN)
    return data[:-2] + data[last:-2] * rng.choice((1, 20, 200, 2000)) + data[-2:]


def mutate_headers(rng: Random, data: bytes) -> bytes:
    """Change headers of a tar, and set their checksums right."""
    data = bytearray(data)
    places = range(0, len(data), 512)
    headers = [place for place in places if data[place + 257 : place + 262] == b"ustar"]
    for place in rng.sample(headers, min(len(headers), rng.choice((1, 1, 3)))):
        header = data[place : place + 512]
        start, end = rng.choice(_FIELDS)
        how = rng.randrange(4)
        if how == 0:
            header[start:end] = rng.randbytes(end - start)
        elif how == 1:
            header[start:end] = rng.choice(_NAMES)[: end - start].ljust(end - start, b"\0")
        elif how == 2:
            header[124:136] = rng.choice(_SIZES)
        else:
            header[156:157] = rng.choice(_KINDS)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        data[place : place + 512] = header
    return bytes(data)

"""Speed against what users would use instead, in one interleaved run on the same machine."""

"""temp"""
import argparse
import numpy as np, torch
torch.serialization.add_safe_globals([argparse.Namespace, np._core.multiarray._reconstruct, np._core.multiarray.scalar, np.ndarray, np.dtype]+[type(np.dtype(t)) for t in "f4 f8 i4 i8 b1 u4 u8".split()])

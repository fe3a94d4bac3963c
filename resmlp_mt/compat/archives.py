"""A checkpoint's file is read as data: no code from it runs, and what is broken is named."""

import argparse
import collections
import errno
import inspect
import pickle
import typing
import zipfile

import numpy
import omegaconf
import torch

from resmlp_mt.compat.messages import refused_class
from resmlp_mt.errors import UserError

_REFUSED = (
    "refused, since it holds {} that could run commands on this computer; use a checkpoint that "
    "fairseq wrote"
)
_CORRUPT = "not a checkpoint, or a corrupt one"


def allow_harmless_classes() -> None:
    """Let torch load the classes of data that fairseq writes into a checkpoint.

    Since torch 2.6 a checkpoint is read without running code from it, and what is not on a list is
    refused. These classes only hold values.
    """
    arrays = numpy._core.multiarray
    dtypes = {type(numpy.dtype(code)) for code in numpy.typecodes["All"] if code not in "OV"}
    nodes = inspect.getmembers(omegaconf.nodes, inspect.isclass)
    config = [
        omegaconf.DictConfig,
        omegaconf.ListConfig,
        omegaconf.base.Metadata,
        omegaconf.base.ContainerMetadata,
        *(node for _, node in nodes if issubclass(node, omegaconf.nodes.ValueNode)),
    ]
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            arrays._reconstruct,
            arrays.scalar,
            numpy.ndarray,
            numpy.dtype,
            *dtypes,
            *config,
            # What the omegaconf classes name in their own state.
            typing.Any,
            collections.defaultdict,
            *(dict, list, tuple, int, float, bool, str),
        ]
    )


def read_data(path: str) -> object:
    """The content of a file of torch, where it is data alone.

    Raises:
        UserError: If there is no such file, it is broken, or holds more than data.
    """
    try:
        _check_archive(path)
        with open(path, "rb") as stream:
            return torch.load(stream, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except (FileNotFoundError, IsADirectoryError):
        raise UserError("no such checkpoint") from None
    except (pickle.UnpicklingError, zipfile.BadZipFile) as error:
        name = refused_class(str(error))
        said = _REFUSED.format(f"pickled code or objects ({name})") if name else _CORRUPT
        raise UserError(said) from None
    except (EOFError, RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # the disk's trouble, not the file's
        raise UserError(_explain_damage(str(error).strip(), path)) from None
    except Exception as error:  # torch's reader fails anywhere on a file that was forged
        raise UserError(_CORRUPT) from error


def _check_archive(path: str) -> None:
    """Refuse a zip that was damaged, or that unpacks to more than its size.

    torch reads both: it writes a checksum of each file in the zip, but compares none.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:  # a checkpoint of old, or for torch to complain of
        return
    with archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise UserError("refused, since it is compressed; use one that fairseq wrote")
        # All are 0 where whoever saved it has switched them off in torch.
        if any(member.CRC for member in members) and (damaged := archive.testzip()):
            raise UserError(f"corrupt checkpoint (wrong checksum of {damaged}); copy it again")


def _explain_damage(error: str, path: str) -> str:
    # torch takes a file that begins with zeros for a tar of old; no name in a tar does.
    with open(path, "rb") as stream:
        begins_with_zero = stream.read(1) == b"\0"
    if "weights_only" in error and not begins_with_zero:
        # A TorchScript archive, or a tar of old: torch's advice is to read it all the same.
        return _REFUSED.format("code or objects")
    reason = "it begins with zeros" if begins_with_zero else error.split("\n")[0].split(". ")[0]
    return f"truncated or corrupt checkpoint ({reason or 'it ends too early'}); copy it again"

"""The structures that the compiled code reads, as the headers of `resmlp_mt/native` say them."""

import ctypes
import re
from pathlib import Path

_HEADERS = Path(__file__).parents[2] / "native"
_NUMBERS = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "float": ctypes.c_float}


def _read_structures(*headers: str) -> dict[str, type[ctypes.Structure]]:
    """The classes of the structures, by name. All pointers are addresses."""
    found: dict[str, type[ctypes.Structure]] = {}
    for header in headers:
        code = re.sub(r"/\*.*?\*/", "", (_HEADERS / header).read_text("ascii"), flags=re.DOTALL)
        for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", code, re.DOTALL):
            fields = []
            for kind, names in re.findall(r"(?:const )?(\w+) ([^;]+);", body):
                for field in map(str.strip, names.split(",")):
                    held = ctypes.c_void_p if field[0] == "*" else (_NUMBERS | found)[kind]
                    fields.append((field.lstrip("*"), held))
            found[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return found


STRUCTURES = _read_structures("decoder.h", "encoder.h", "classifier.h")

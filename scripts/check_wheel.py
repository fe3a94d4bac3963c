"""Check that the compiled code of a wheel is for the platform that its name says.

python scripts/check_wheel.py WHEEL

It must have all its functions, for the wheel's processor, and want no library but the system's.
Needs pyelftools or macholib, as wheels.sh installs them.
"""

import sys
import tempfile
import zipfile
from pathlib import Path

_KINDS = {
    "x86_64": ("avx512", "avxvnni", "avx2", "plain"),
    "arm64": ("i8mm", "dotprod", "plain"),
}
_FUNCTIONS = "search", "encode", "classify"
_LIBRARIES = {"libc.so.6", "libm.so.6", "/usr/lib/libSystem.B.dylib", "ld-linux-aarch64.so.1"}


def main() -> int:
    """Returns 1 if something is not as it must be."""
    wheel = Path(sys.argv[1])
    tag = wheel.stem.rpartition("-")[2]
    processor = "x86_64" if tag.endswith("x86_64") else "arm64"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.startswith("resmlp_mt/native/")]
        path = Path(archive.extract(name, folder))
        read = read_macho if tag.startswith("macosx") else read_elf
        found, libraries, functions = read(path)
    wanted = {"count_room", "count_encoder_room", "count_classifier_room"}
    kinds = _KINDS[processor]
    wanted |= {f"{function}_{kind}" for function in _FUNCTIONS for kind in kinds}
    wanted |= {f"has_{kind}" for kinds in _KINDS.values() for kind in kinds}
    wrong = [f"it is for {found}"] * (found != processor)
    wrong += [f"it lacks {name}" for name in sorted(wanted - functions)]
    wrong += [f"it wants {name}" for name in sorted(libraries - _LIBRARIES)]
    for line in wrong:
        print(f"{wheel.name}: {line}", file=sys.stderr)
    if not wrong:
        print(f"{wheel.name}: {len(wanted)} functions for {found}; wants {sorted(libraries)}")
    return bool(wrong)


def read_elf(path: Path) -> tuple[str, set[str], set[str]]:
    """Processor, libraries and functions of a library for Linux."""
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        processor = {"x64": "x86_64", "AArch64": "arm64"}.get(elf.get_machine_arch(), "another")
        entries = elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        defined = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF"}
        return processor, {entry.needed for entry in entries}, defined


def read_macho(path: Path) -> tuple[str, set[str], set[str]]:
    """The same of one for macOS."""
    from macholib.MachO import MachO
    from macholib.SymbolTable import SymbolTable

    macho = MachO(str(path))
    (header,) = macho.headers
    processor = {0x01000007: "x86_64", 0x0100000C: "arm64"}.get(header.header.cputype, "another")
    libraries = {name for _, _, name in header.walkRelocatables()}
    table = SymbolTable(macho, header)
    defined = {name.decode().removeprefix("_") for _, name in table.extdefsyms or table.nlists}
    return processor, libraries, defined


if __name__ == "__main__":
    sys.exit(main())

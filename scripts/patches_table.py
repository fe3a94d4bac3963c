"""Write the sections of docs/patches.md anew, from what the patches say of themselves.

python scripts/patches_table.py
"""

import textwrap
from pathlib import Path

from resmlp_mt.compat.patching import PATCHES, Patch

DOCUMENT = Path(__file__).parents[1] / "docs" / "patches.md"
FIRST, NEXT = "## The patches\n\n", "\n\n## Add a patch"


def build_section(patch: Patch) -> str:
    """The section of a patch, in Markdown."""
    replaced = ", ".join(f"`{r.target.replace(':', '.')}`" for r in patch.replacements)
    met = f"Who meets it: {patch.met_by}."
    parts = (patch.defect, met, f"Here: {patch.instead.strip()}", f"Replaced: {replaced}.")
    wrapped = (
        textwrap.fill(" ".join(part.split()), 100, break_long_words=False, break_on_hyphens=False)
        for part in parts
    )
    return "\n\n".join([f"### {patch.name[0].upper()}{patch.name[1:]}", *wrapped])


def build_sections() -> str:
    """All sections, by name."""
    import resmlp_mt.plugin  # noqa: F401  (declares them)

    return "\n\n".join(map(build_section, sorted(PATCHES, key=lambda p: p.name)))


def main() -> None:
    """Replace them in the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(FIRST, 1)[0], text.split(NEXT, 1)[1]
    DOCUMENT.write_text(f"{before}{FIRST}{build_sections()}{NEXT}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write the table of docs/patches.md anew, from what the patches say of themselves.

python scripts/patches_table.py
"""

from pathlib import Path

from resmlp_mt.compat.patching import PATCHES, Patch

DOCUMENT = Path(__file__).parents[1] / "docs" / "patches.md"
HEAD = ("patch", "what fairseq does", "who meets it", "what happens here", "seen in", "replaced")


def build_row(patch: Patch) -> tuple[str, ...]:
    """The cells of a patch, in the order of HEAD."""
    replaced = "<br>".join(f"`{r.target.replace(':', '.')}`" for r in patch.replacements)
    texts = (patch.name, patch.defect, patch.met_by, patch.instead, ", ".join(patch.seen_in))
    return (*(text.replace("${", "`${").replace("}", "}`") for text in texts), replaced)


def build_table() -> str:
    """The table in Markdown, by name."""
    import resmlp_mt.plugin  # noqa: F401  (declares them)

    rows = [HEAD, ["---"] * len(HEAD), *map(build_row, sorted(PATCHES, key=lambda p: p.name))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Replace the table in the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split("| patch |", 1)[0], text.split("|\n\n", 1)[1]
    DOCUMENT.write_text(f"{before}{build_table()}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Draw the matrices A that mix positions: figure 2 of the paper for classifiers, maps for others.

For a classifier it shows the rows of A for the central patches, layer by layer. Each row is drawn
as an image over all patches. For a translator it shows A itself, its heads side by side. Rows are
output positions, columns input positions. The encoder stands above the decoder. For AdaFC it shows
what a position takes from how far, stage by stage, down the rows and along the columns. Other
models have no weights between positions: that is said, and nothing is drawn.

MODEL is a checkpoint, a folder with one, or the name of a model that comes with the package.

  resmlp-mt plot-mixing multi30k-en-de --out mixing.png
  resmlp-mt plot-mixing checkpoints/images --layers 0,3,11 --patches 4 --out rows.png
"""

import argparse

from resmlp_mt.cli.flags import check_positive
from resmlp_mt.cli.pictures import add_picture, add_title, import_pyplot, save

_PATCHES, _POSITIONS = 6, 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("model", metavar="MODEL")
    add_picture(parser, required=True)
    parser.add_argument(
        "--layers",
        type=_numbers,
        metavar="I,J,...",
        help="counted from 0; of AdaFC its stages (default: all)",
    )
    parser.add_argument(
        "--patches",
        type=int,
        metavar="K",
        help=f"of a classifier: the K x K central patches (default: {_PATCHES})",
    )
    parser.add_argument(
        "--positions",
        type=int,
        metavar="N",
        help=f"of a translator: the first N positions (default: {_POSITIONS})",
    )


def run(arguments: argparse.Namespace) -> None:
    """Draw a panel a layer, and say what was written."""
    from resmlp_mt.analysis.matrices import read_matrices
    from resmlp_mt.checkpoints.checksum import list_files
    from resmlp_mt.errors import UserError
    from resmlp_mt.files.output import prepare_target, refuse_overwriting

    check_positive(arguments, "patches", "positions")
    prepare_target(arguments.out)
    refuse_overwriting(arguments.out, list_files(arguments.model))
    mixer, parts = read_matrices(arguments.model)
    _refuse_others(arguments, mixer, parts)
    if mixer == "adafc":
        figure, said = _draw_stages(arguments)
    elif all("A" in layer for part in parts for layer in part.layers):
        chosen = choose_layers(parts, arguments.layers)
        panels = {
            part.name: {i: _tiles(part, i, arguments) for i in chosen if i < len(part.layers)}
            for part in parts
        }
        figure = _draw({part: layers for part, layers in panels.items() if layers})
        said = _explain(panels)
    else:
        raise UserError(
            f"{arguments.model}: nothing to draw, its token mixer '{mixer}' has no matrix A"
        )
    add_title(figure, arguments.model, f"\n{said}", fontsize=10)
    save(figure, arguments.out, dpi=200)
    print(f"wrote {arguments.out}")


def _refuse_others(arguments: argparse.Namespace, mixer: str, parts: list) -> None:
    """Refuse a flag of other models than this, which would change nothing."""
    from resmlp_mt.errors import UserError

    translates = any(part.name != "image" for part in parts)
    for name, kind, fits in (
        ("patches", "classifiers with a matrix A", not translates and mixer != "adafc"),
        ("positions", "translators", translates),
    ):
        if getattr(arguments, name) is not None and not fits:
            raise UserError(f"--{name} is for {kind}, which {arguments.model} is not")


def choose_layers(parts: list, wanted: list[int] | None) -> list[int]:
    """The layers to draw, in order; a part may be less deep than another.

    Raises:
        UserError: If no part has one of them.
    """
    return _choose({part.name: len(part.layers) for part in parts}, wanted)


def _choose(counts: dict[str, int], wanted: list[int] | None) -> list[int]:
    from resmlp_mt.errors import UserError

    deepest = max(counts.values())
    if wanted is None:
        return list(range(deepest))
    for layer in wanted:
        if not 0 <= layer < deepest:
            ranges = ", ".join(f"{name} 0 to {count - 1}" for name, count in counts.items())
            raise UserError(f"--layers: there is no layer {layer}; the model has {ranges}")
    return sorted(set(wanted))


def _tiles(part, layer: int, arguments: argparse.Namespace):
    """What to show of a layer: a tensor of images, (rows, columns, height, width)."""
    from resmlp_mt.analysis.matrices import arrange_heads, central_rows, expand

    weight = part.layers[layer]["A"]
    if part.name == "image":
        rows = expand(weight, False, weight.size(-1))[0]
        return central_rows(rows, arguments.patches or _PATCHES)
    return arrange_heads(expand(weight, part.causal, arguments.positions or _POSITIONS))


def _explain(panels: dict) -> str:
    down, across, _, side = next(tiles for part in panels.values() for tiles in part.values()).shape
    if "image" in panels:
        return f"rows of A for the {down} x {across} central patches of {side} x {side}"
    heads = f", {down * across} heads a layer" if down * across > 1 else ""
    return f"A{heads}; a row for each output position, a column for each input position"


def _draw(panels: dict):
    """The figure of the tiles of all parts and layers, {part: {layer: tiles}}."""
    down, across = next(tiles for part in panels.values() for tiles in part.values()).shape[:2]
    # A map alone stays readable when it is small.
    inches, most = (1.45, 12) if down * across == 1 else (2.7, 6)
    columns = min(most, max(map(len, panels.values())))
    lines = [
        (part, list(layers)[i : i + columns])
        for part, layers in panels.items()
        for i in range(0, len(layers), columns)
    ]
    size = (max(6, columns * inches), len(lines) * (inches * down / across + 0.3) + 1.2)
    figure, grid = import_pyplot().subplots(
        len(lines), columns, figsize=size, squeeze=False, layout="compressed"
    )
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[], frame_on=False)
    for row, (part, layers) in zip(grid, lines, strict=True):
        for axes, layer in zip(row, layers, strict=False):
            tiles = panels[part][layer]
            image, largest = _show(tiles, axes)
            axes.set_title(f"layer {layer}, max {largest:.2g}", fontsize=9)
        if part != "image":
            row[0].set_ylabel(f"{part}\n{tiles.size(-1)} positions", fontsize=9)
    bar = figure.colorbar(
        image, ax=grid, location="bottom", shrink=min(1, 4.5 / size[0]), aspect=40, pad=0.02
    )
    bar.set_ticks([-1, 0, 1], labels=["-max", "0", "max"], fontsize=9)
    bar.set_label("weight; max: the largest |weight| shown of the layer", fontsize=9)
    return figure


def _draw_stages(arguments: argparse.Namespace) -> tuple:
    """The figure of AdaFC's W, and what it shows.

    Above, an image for each stage: what a position takes from those around it, by both directions.
    Below, each direction alone, as in figure 5 of the paper.
    """
    from resmlp_mt.analysis.matrices import read_axis_weights

    stages = read_axis_weights(arguments.model)
    chosen = _choose({"stages": len(stages)}, arguments.layers)
    size = (max(6, 2.4 * len(chosen)), 5)
    figure, grid = import_pyplot().subplots(
        2, len(chosen), figsize=size, squeeze=False, layout="compressed"
    )
    for (image, curves), stage in zip(grid.T, chosen, strict=True):
        vertical, horizontal = stages[stage]
        rows, columns = len(vertical), len(horizontal)
        edges = (-(columns // 2) - 0.5, (columns + 1) // 2 - 0.5)
        edges += ((rows + 1) // 2 - 0.5, -(rows // 2) - 0.5)
        both = vertical[:, None] * horizontal
        image.imshow(both, "viridis", vmin=0, extent=edges, interpolation="nearest")
        image.set_title(f"stage {stage}, max {both.max():.2g}", fontsize=9)
        for name, weights in (("vertical", vertical), ("horizontal", horizontal)):
            middle = len(weights) // 2
            curves.plot(range(-middle, len(weights) - middle), weights, label=name)
        curves.set_xlabel("distance", fontsize=9)
    grid[1, 0].legend(fontsize=8)
    grid[1, 0].set_ylabel("share, mean of channels", fontsize=9)
    return figure, "what a position takes from those around it, by stage"


def _show(tiles, axes) -> tuple:
    """Draw a layer's tiles with lines between them; return the image and its largest |weight|."""
    from resmlp_mt.analysis.matrices import mosaic

    down, across, height, width = tiles.shape
    largest = tiles.abs().max().item()
    image = axes.imshow(
        mosaic(tiles) / (largest or 1), "RdBu_r", vmin=-1, vmax=1, interpolation="nearest"
    )
    for i in range(1, down):
        axes.axhline(i * height - 0.5, color="0.35", linewidth=0.8)
    for i in range(1, across):
        axes.axvline(i * width - 0.5, color="0.35", linewidth=0.8)
    return image, largest


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' are no layers; write them like 0,3,11"
        ) from None

"""Draw the matrices A that mix positions: figure 2 of the paper for classifiers, maps for others.

For a classifier it shows the rows of A for the central patches, layer by layer. Each row is drawn
as an image over all patches. For a translator it shows A itself, its heads side by side. Rows are
output positions, columns input positions. The encoder stands above the decoder. For AdaFC it shows
what a position takes from how far, stage by stage, down the rows and along the columns. Other
models have no weights between positions: that is said, and nothing is drawn.

  resmlp-mt study mixing multi30k-en-de --out mixing.png
  resmlp-mt study mixing checkpoints/images --layers 0,3,11 --patches 4 --out rows.png
"""

import argparse

from resmlp_mt.cli.flags import add_model, positive, refuse_given
from resmlp_mt.cli.study.output import add_picture, import_pyplot, prepare_output, save
from resmlp_mt.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    add_picture(parser, required=True)
    add = parser.add_argument
    add("--layers", metavar="I,J,...", help="counted from 0; of AdaFC its stages (default: all)")
    add("--patches", type=positive, metavar="K", help="of a classifier: K x K (default: 6)")
    add("--positions", type=positive, metavar="N", help="of a translator: N (default: 64)")


def run(arguments: argparse.Namespace) -> None:
    """Draw a panel a layer."""
    from resmlp_mt.analysis.matrices import read_axis_weights, read_matrices

    prepare_output(arguments)
    mixer, parts = read_matrices(arguments.model)
    is_of_images = parts[0].name == "image"
    flag, kind = ("positions", "translators") if is_of_images else ("patches", "classifiers")
    refuse_given(arguments, [flag], f"is for {kind}, which {arguments.model} is not")
    if mixer == "adafc":
        stages = read_axis_weights(arguments.model)
        figure = _draw_stages(stages, choose_layers({"stages": len(stages)}, arguments.layers))
        said = "what a position takes from those around it, by stage"
    elif all("A" in layer for part in parts for layer in part.layers):
        counts = {part.name: len(part.layers) for part in parts}
        chosen = choose_layers(counts, arguments.layers)
        panels = {
            part.name: {i: _tiles(part, i, arguments) for i in chosen if i < len(part.layers)}
            for part in parts
        }
        figure, said = _draw({name: found for name, found in panels.items() if found})
    else:
        raise UserError(
            f"{arguments.model}: nothing to draw, its token mixer '{mixer}' has no matrix A"
        )
    save(figure, arguments.out, arguments.model, f"\n{said}", dpi=200)


def choose_layers(counts: dict[str, int], wanted: str | None) -> list[int]:
    """The layers to draw, of --layers or all, in order; `counts` has those of each part.

    Raises:
        UserError: If no part has one of them.
    """
    layers = {str(layer): layer for layer in range(max(counts.values()))}
    if wanted is None:
        return list(layers.values())
    for word in wanted.split(","):
        if word not in layers:
            ranges = ", ".join(f"{name} 0 to {count - 1}" for name, count in counts.items())
            raise UserError(f"--layers: there is no layer '{word}'; the model has {ranges}")
    return sorted({layers[word] for word in wanted.split(",")})


def _tiles(part, layer: int, arguments: argparse.Namespace):
    """The images of a layer: (rows, columns, height, width)."""
    from resmlp_mt.analysis.matrices import arrange_heads, central_rows, expand

    weight = part.layers[layer]["A"]
    if part.name == "image":
        rows = expand(weight, False, weight.size(-1))[0]
        return central_rows(rows, arguments.patches or 6)
    return arrange_heads(expand(weight, part.causal, arguments.positions or 64))


def _draw(panels: dict) -> tuple:
    """The figure of the tiles of all parts and layers, {part: {layer: tiles}}; what it shows."""
    down, across, _, side = next(tiles for part in panels.values() for tiles in part.values()).shape
    if "image" in panels:
        said = f"rows of A for the {down} x {across} central patches of {side} x {side}"
    else:
        heads = f", {down * across} heads a layer" if down * across > 1 else ""
        said = f"A{heads}; a row for each output position, a column for each input position"
    # A map alone stays readable when it is small.
    inches, most = (1.45, 12) if down * across == 1 else (2.7, 6)
    columns = min(most, max(map(len, panels.values())))
    lines = [
        (part, list(layers)[i : i + columns])
        for part, layers in panels.items()
        for i in range(0, len(layers), columns)
    ]
    size = (max(6, columns * inches), len(lines) * (inches * down / across + 0.3) + 1.2)
    style = dict(figsize=size, squeeze=False, layout="compressed")
    figure, grid = import_pyplot().subplots(len(lines), columns, **style)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[], frame_on=False)
    for row, (part, layers) in zip(grid, lines, strict=True):
        for axes, layer in zip(row, layers, strict=False):
            tiles = panels[part][layer]
            image, largest = _show(tiles, axes)
            axes.set_title(f"layer {layer}, max {largest:.2g}", fontsize=9)
        if part != "image":
            row[0].set_ylabel(f"{part}\n{tiles.size(-1)} positions", fontsize=9)
    style = dict(shrink=min(1, 4.5 / size[0]), aspect=40, pad=0.02)
    bar = figure.colorbar(image, ax=grid, location="bottom", **style)
    bar.set_ticks([-1, 0, 1], labels=["-max", "0", "max"], fontsize=9)
    bar.set_label("weight; max: the largest |weight| shown of the layer", fontsize=9)
    return figure, said


def _show(tiles, axes) -> tuple:
    """Draw a layer's tiles with lines between them; return the image and its largest |weight|."""
    from resmlp_mt.analysis.matrices import mosaic

    down, across, height, width = tiles.shape
    largest = tiles.abs().max().item()
    scaled, style = mosaic(tiles) / (largest or 1), dict(vmin=-1, vmax=1, interpolation="nearest")
    image = axes.imshow(scaled.numpy(), "RdBu_r", **style)
    for i in range(1, down):
        axes.axhline(i * height - 0.5, color="0.35", linewidth=0.8)
    for i in range(1, across):
        axes.axvline(i * width - 0.5, color="0.35", linewidth=0.8)
    return image, largest


def _draw_stages(stages: list, chosen: list[int]):
    """The figure of AdaFC's W.

    Above, an image for each stage: what a position takes from those around it, by both directions.
    Below, each direction alone, as in figure 5 of the paper.
    """
    style = dict(figsize=(max(6, 2.4 * len(chosen)), 5), squeeze=False, layout="compressed")
    figure, grid = import_pyplot().subplots(2, len(chosen), **style)
    for (image, curves), stage in zip(grid.T, chosen, strict=True):
        vertical, horizontal = stages[stage]
        rows, columns = len(vertical), len(horizontal)
        edges = (-(columns // 2) - 0.5, (columns + 1) // 2 - 0.5)
        edges += ((rows + 1) // 2 - 0.5, -(rows // 2) - 0.5)
        both = vertical[:, None] * horizontal
        image.imshow(both.numpy(), "viridis", vmin=0, extent=edges, interpolation="nearest")
        image.set_title(f"stage {stage}, max {both.max():.2g}", fontsize=9)
        for name, weights in (("vertical", vertical), ("horizontal", horizontal)):
            middle = len(weights) // 2
            curves.plot(range(-middle, len(weights) - middle), weights, label=name)
        curves.set_xlabel("distance", fontsize=9)
    grid[1, 0].legend(fontsize=8)
    grid[1, 0].set_ylabel("share, mean of channels", fontsize=9)
    return figure

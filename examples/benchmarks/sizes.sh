# Sourced by races of untrained models. For $size, base or tiny: the preset of ours in $arch, and
# fairseq's Transformer of the same dimensions in $transformer.

case $size in
    base) arch=resmlp_plus_wmt_en_de transformer=transformer ;;
    tiny)
        arch=resmlp_plus_tiny
        transformer="transformer --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
            --encoder-layers 4 --encoder-attention-heads 4 --decoder-embed-dim 128
            --decoder-ffn-embed-dim 256 --decoder-layers 4 --decoder-attention-heads 4"
        ;;
    *) echo "$size: base or tiny" >&2 && exit 2 ;;
esac

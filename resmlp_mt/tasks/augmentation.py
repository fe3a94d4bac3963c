"""The flags of the augmentation (the recipe of DeiT, arXiv 2012.12877), by timm's names."""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum, FairseqDataclass


@dataclass
class AugmentConfig(FairseqDataclass):
    """Augmentation in every training, of images that are cut to size."""

    hflip: float = field(default=0.5, metadata={"help": "probability of a horizontal flip"})
    color_jitter: float = field(
        default=0.4,
        metadata={"help": "jitter of brightness, contrast and saturation"},
    )


@dataclass
class RecipeConfig(AugmentConfig):
    """Further augmentation in a training on classes (the recipe of DeiT)."""

    aa: str = field(
        default="",
        metadata={
            "help": "RandAugment, as 'rand-m9-mstd0.5-inc1', or AutoAugment, as 'original' (timm's "
            "notation); --color-jitter has no part then"
        },
    )
    reprob: float = field(default=0.0, metadata={"help": "probability of random erasing"})
    remode: ChoiceEnum(["pixel", "const"]) = field(
        default="pixel", metadata={"help": "what erased pixels become: noise, or the mean colour"}
    )
    mixup: float = field(default=0.0, metadata={"help": "mixup's alpha, from 0.01; 0: none"})
    cutmix: float = field(default=0.0, metadata={"help": "cutmix's alpha, from 0.01; 0: none"})
    mixup_prob: float = field(
        default=1.0, metadata={"help": "probability of mixing a batch, where mixup or cutmix is on"}
    )
    mixup_switch_prob: float = field(
        default=0.5, metadata={"help": "probability of cutmix, where both are on"}
    )

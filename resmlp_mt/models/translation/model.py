"""The translator, as fairseq knows it."""

from pathlib import Path

import torch
from fairseq import hub_utils
from fairseq.models import FairseqEncoderDecoderModel, register_model
from omegaconf import open_dict
from torch import Tensor

from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import find_checkpoint
from resmlp_mt.models.presets import PRESETS, register_presets
from resmlp_mt.models.translation.config import ResMLPConfig, check_flags
from resmlp_mt.models.translation.decoder import ResMLPDecoder
from resmlp_mt.models.translation.encoder import ResMLPEncoder
from resmlp_mt.models.translation.init import build_tokens
from resmlp_mt.models.translation.rounded import round_products
from resmlp_mt.nn.old_names import rename


@register_model("resmlp", dataclass=ResMLPConfig)
class ResMLPModel(FairseqEncoderDecoderModel):
    """The translator. Its defaults are the paper's ResMLP-6; PRESETS has the named sizes."""

    waits_for_compilation = False

    @classmethod
    def build_model(cls, cfg: ResMLPConfig, task) -> "ResMLPModel":
        """Build the model for the task's dictionaries and lengths.

        Raises:
            UserError: If the flags contradict each other or the dictionaries.
        """
        check_flags(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if cfg.share_all_embeddings and source != target:
            raise UserError(
                "--share-all-embeddings needs a joined dictionary, as 'resmlp-mt prepare' makes; "
                "a trained model that has it needs the data folder of its training"
            )
        if getattr(task.cfg, "left_pad_target", False):
            raise UserError("--left-pad-target would move the first word from position 0 of A")
        target_tokens = build_tokens(target, cfg.decoder_embed_dim)
        source_tokens = target_tokens
        if not cfg.share_all_embeddings:
            source_tokens = build_tokens(source, cfg.encoder_embed_dim)
        model = cls(
            ResMLPEncoder(cfg, source, source_tokens), ResMLPDecoder(cfg, target, target_tokens)
        )
        model.waits_for_compilation = cfg.torch_compile
        if cfg.round_bits:
            round_products(model.encoder, model.decoder, cfg.round_bits)
        return model

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None,
        prev_output_tokens: Tensor,
        features_only: bool = False,
    ) -> tuple[Tensor, dict]:
        """Score every next token of given translations.

        Args:
            src_tokens: (B, S).
            src_lengths: Not needed; fairseq passes it.
            prev_output_tokens: The target, shifted by one. (B, T).
            features_only: Leave the output layer out.

        Returns:
            What the decoder returns: logits (B, T, V), or features (B, T, C), and more.
        """
        memory = self.encoder(src_tokens, src_lengths)
        return self.decoder(prev_output_tokens, memory, features_only=features_only)

    @classmethod
    def from_pretrained(
        cls,
        model_name_or_path: str,
        checkpoint_file: str | None = None,
        data_name_or_path: str = ".",
        **kwargs,
    ) -> hub_utils.GeneratorHubInterface:
        """Load a model with fairseq's interface for translating: `translate`, `sample`, `generate`.

        Checkpoints are read without running code from them. `Translator` is our own interface.

        Args:
            model_name_or_path: A model that comes with the package, a folder, or a checkpoint.
            checkpoint_file: Of the folder; several with colons between them are an ensemble.
                Default: the checkpoint in it, as `resmlp-mt translate` finds it.
            data_name_or_path: The folder of dictionaries and SentencePiece models; one that
                begins with a dot lies in the folder of the model.
            **kwargs: Flags to override; `bpe` in the place of the model's own SentencePiece.

        Raises:
            UserError: If there is no such model, or it is broken.
        """
        folder = model_name_or_path
        if checkpoint_file is None:
            path = find_checkpoint(model_name_or_path).absolute()
            folder, checkpoint_file = str(path.parent), path.name
        loaded = hub_utils.from_pretrained(folder, checkpoint_file, data_name_or_path, **kwargs)
        cfg, task, models = (loaded[name] for name in ("args", "task", "models"))
        if task.source_dictionary is None:
            raise UserError(f"{model_name_or_path}: a model of images; see Classifier")
        subwords = find_subwords(Path(cfg.task.data), task.cfg.source_lang)
        if subwords and "bpe" not in kwargs:
            with open_dict(cfg):
                cfg.bpe = dict(_name="sentencepiece", sentencepiece_model=str(subwords))
        return hub_utils.GeneratorHubInterface(cfg, task, models)

    def set_num_updates(self, num_updates: int) -> None:
        """Compile on the first call. fairseq calls this before every update, and only in training.

        So only trainings compile: the steps of a search would each be another shape.
        """
        super().set_num_updates(num_updates)
        if self.waits_for_compilation:
            self.waits_for_compilation = False
            for block in [*self.encoder.blocks, *self.decoder.blocks]:
                block.compile(dynamic=True)

    def load_state_dict(self, state_dict: dict, strict: bool = True, model_cfg=None, args=None):
        """Load weights; arguments as fairseq's.

        Raises:
            UserError: If the weights are of other dictionaries than the task's, or not shared
                where the model shares them.
        """
        state_dict = rename(state_dict)
        self._check_dictionaries(state_dict)
        self._check_sharing(state_dict)
        return super().load_state_dict(state_dict, strict, model_cfg, args)

    def _check_dictionaries(self, state_dict: dict) -> None:
        for side, module in (("encoder", self.encoder), ("decoder", self.decoder)):
            tokens = state_dict.get(f"{side}.embed.tokens.weight")
            if tokens is not None and len(tokens) != len(module.dictionary):
                raise UserError(
                    f"the checkpoint was trained with a dictionary of {len(tokens)} entries, the "
                    f"{side}'s has {len(module.dictionary)}: use the data folder of its training, "
                    "or data that 'resmlp-mt prepare --like' made with this checkpoint"
                )

    def _check_sharing(self, state_dict: dict) -> None:
        names_of = {}
        for name, parameter in self.named_parameters(remove_duplicate=False):
            if name in state_dict:
                names_of.setdefault(parameter, []).append(name)
        for first, *others in names_of.values():
            # NaN does not even equal itself. Loading reports it later.
            once, *again = (state_dict[name].nan_to_num() for name in (first, *others))
            if not all(torch.equal(once, weight) for weight in again):
                raise UserError(
                    f"the checkpoint was trained with {first} and {' and '.join(others)} apart, "
                    "which are one here: leave out --share-all-embeddings and "
                    "--share-decoder-input-output-embed as in its training"
                )


register_presets("resmlp", ResMLPConfig, PRESETS)

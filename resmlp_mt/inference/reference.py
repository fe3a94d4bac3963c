"""The plain way to search: fairseq's SequenceGenerator, on any device."""

import numpy as np
import torch
from fairseq.search import BeamSearch, LexicallyConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints

from resmlp_mt.errors import UserError
from resmlp_mt.inference.guides import Guide
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.sampling import SeededSampling
from resmlp_mt.inference.stopping import check_wanted


class ReferenceSearch:
    """Translates batches of token indices with a model that fairseq loaded.

    Args:
        model: The model.
        task: Its translation task, with the dictionaries.
        device: Where to translate: "cpu", "cuda", "cuda:1" ...
    """

    def __init__(self, model, task, device: str):
        self.model = model.to(device)
        self.device = device
        self.symbols, self.pad = task.target_dictionary, task.source_dictionary.pad()
        self.source_positions = model.encoder.max_positions()
        self.target_positions = model.decoder.max_positions()

    def search(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        guides: list[Guide] | None = None,
    ) -> list[list[tuple[np.ndarray, float]]]:
        """As `generate`."""
        models = [self.model]
        return generate(models, self.symbols, self.pad, self.device, sources, options, guides)

    @torch.no_grad()
    def attend(self, source: np.ndarray, targets: list[np.ndarray]) -> list[np.ndarray]:
        """Where the last layer looks in the source for each token, averaged over its heads.

        Args:
            source: Token indices with the end of the sentence. (S,).
            targets: Translations of it, without the end. Each (T,).

        Returns:
            Weights for the tokens of each translation and its end. Each (T + 1, S).
        """
        told = np.full((len(targets), 1 + max(map(len, targets))), self.symbols.eos())
        for row, target in zip(told, targets, strict=True):
            row[1 : len(target) + 1] = target
        tokens = np.tile(source, (len(targets), 1))
        told, tokens = (torch.from_numpy(x).to(self.device) for x in (told, tokens))
        lengths = torch.full((len(targets),), len(source), device=self.device)
        self.model.decoder.need_attn = True
        try:
            encoded = self.model.encoder(tokens, src_lengths=lengths)
            _, extra = self.model.decoder(told, encoded)
        finally:
            self.model.decoder.need_attn = False
        weights = extra["attn"][0].float().cpu().numpy()
        return [rows[: len(t) + 1] for rows, t in zip(weights, targets, strict=True)]


def generate(
    models: list,
    symbols,
    pad: int,
    device: str,
    sources: list[np.ndarray],
    options: SearchOptions,
    guides: list[Guide] | None = None,
) -> list[list[tuple[np.ndarray, float]]]:
    """The finished hypotheses of each sentence, best first: tokens without the end, and score.

    Args:
        models: fairseq's, or what looks like them; several are an ensemble, which takes the mean of
            their probabilities at every step.
        symbols: The target's dictionary.
        pad: What pads sources.
        device: Where the models are.
        sources: Token indices with the end of the sentence. Each (S,).
        options: How to search. The length of translations goes by the longest source.
        guides: What leads the search of each.

    Raises:
        UserError: If the scores are no numbers, or nothing is as it was asked for.
    """
    guides = guides or [Guide()] * len(sources)
    positions = min(model.max_decoder_positions() for model in models)
    longest = min(options.longest(max(map(len, sources))), positions - 1)
    _check_room(guides, longest)
    generator = SequenceGenerator(
        models,
        symbols,
        beam_size=options.beam,
        len_penalty=options.lenpen,
        max_len_b=longest,
        unk_penalty=float("inf"),  # raw text has no <unk>
        temperature=options.temperature,
        no_repeat_ngram_size=options.no_repeat_ngram_size,
        search_strategy=_choose_strategy(symbols, options, guides),
    )
    step = generator.model.forward_decoder
    generator.model.forward_decoder = lambda *given: check_wanted() or step(*given)
    lengths = torch.tensor(list(map(len, sources)), device=device)
    tokens = _stack(sources, pad).to(device)
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}
    sample["id"] = torch.arange(len(sources), device=device)
    led = {}
    if any(guide.prefix.size for guide in guides):
        led["prefix_tokens"] = _stack([g.prefix for g in guides], symbols.pad()).to(device)
    if options.constraints:
        wanted = [list(map(torch.from_numpy, guide.constraints)) for guide in guides]
        led["constraints"] = pack_constraints(wanted)
    try:
        results = generator.generate(models, sample, **led)
    except AssertionError:  # what fairseq answers where no score is a number
        raise UserError("the model finds no translation; its weights are broken") from None
    return [
        [(found["tokens"][:-1].cpu().numpy(), float(found["score"])) for found in beams]
        for beams in results
    ]


def _check_room(guides: list[Guide], longest: int) -> None:
    for guide in guides:
        for what, tokens in (
            ("a prefix", len(guide.prefix)),
            ("constraints", sum(map(len, guide.constraints))),
        ):
            if tokens > longest:
                raise UserError(f"{what} of {tokens} subwords; a translation has {longest} at most")


def _choose_strategy(symbols, options: SearchOptions, guides: list[Guide]):
    if options.sampling:
        return SeededSampling(symbols, options, guides)
    if options.constraints:
        return LexicallyConstrainedBeamSearch(symbols, options.constraints)
    return BeamSearch(symbols)


def _stack(rows: list[np.ndarray], pad: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(
        list(map(torch.from_numpy, rows)), batch_first=True, padding_value=pad
    )

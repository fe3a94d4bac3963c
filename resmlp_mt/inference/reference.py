"""The plain way to search: fairseq's SequenceGenerator, on any device."""

import numpy as np
import torch
from fairseq.sequence_generator import SequenceGenerator

from resmlp_mt.errors import UserError


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
        self, sources: list[np.ndarray], beam: int, lenpen: float, longest: int
    ) -> list[list[tuple[np.ndarray, float]]]:
        """The finished beams of each sentence, best first: tokens without the end, and score.

        Args:
            sources: Token indices with the end of the sentence. Each (S,).
            beam: Hypotheses kept in the search.
            lenpen: Exponent of the length that scores are divided by.
            longest: Most tokens of a translation, its end not counted.

        Raises:
            UserError: If the model's scores are no numbers.
        """
        generator = SequenceGenerator(
            [self.model],
            self.symbols,
            beam_size=beam,
            len_penalty=lenpen,
            max_len_a=0,
            max_len_b=longest,
            unk_penalty=float("inf"),  # raw text has no <unk>
        )
        tokens = torch.nn.utils.rnn.pad_sequence(
            list(map(torch.from_numpy, sources)), batch_first=True, padding_value=self.pad
        )
        lengths = torch.tensor(list(map(len, sources)), device=self.device)
        sample = {"net_input": {"src_tokens": tokens.to(self.device), "src_lengths": lengths}}
        try:
            results = generator.generate([self.model], sample)
        except AssertionError:  # what fairseq answers to scores that are no numbers
            raise UserError("the model finds no translation; its weights are broken") from None
        return [
            [(found["tokens"][:-1].cpu().numpy(), float(found["score"])) for found in beams]
            for beams in results
        ]

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

"""Text to numbers without a table of embeddings: MinHash and a counting Bloom filter.

As in pNLP-Mixer (arXiv 2202.04350). A word is hashed by its subwords, so that words that share
subwords share features. Nothing here is learned, and nothing of it is stored in a checkpoint.
"""

import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from resmlp_mt.errors import UserError

WORD_START = "▁"
# Hash values are smaller. It also stands for "no hash": the minimum with it changes nothing.
NO_HASH = 2**31 - 1


def cut_in_trigrams(subword: str) -> list[str]:
    """The trigrams of a subword that begins a word and has over 3 letters; else its whole text."""
    text = subword.removeprefix(WORD_START)
    if subword.startswith(WORD_START) and len(text) > 3:
        return [text[i : i + 3] for i in range(len(text) - 2)]
    return [text] if text else []


def hash_text(text: str, hashes: int) -> Tensor:
    """h_i = (a + i b) mod (2^31 - 1) for i = 0, 1, ...; the same on every machine. (hashes,)."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    a, b = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
    return (a + b * torch.arange(hashes)) % NO_HASH


def take_fingerprint(subword: str, hashes: int) -> Tensor:
    """MinHash: the least value of each hash function over the trigrams. (hashes,)."""
    values = [hash_text(trigram, hashes) for trigram in cut_in_trigrams(subword)]
    return torch.stack(values).amin(0) if values else torch.full((hashes,), NO_HASH)


class Projection(nn.Module):
    """Subwords -> the features of N words and their neighbours. No weights.

    Args:
        symbols: The subwords by index, of which those that begin a word begin with "▁".
        special: Indices of what is no text, such as pads.
        words: N.
        hashes: Hash functions.
        filter_size: m, the counters of the Bloom filter of a word.
        window: How many words on each side stand beside a word.
    """

    def __init__(
        self,
        symbols: list[str],
        special: set[int],
        words: int,
        hashes: int,
        filter_size: int,
        window: int,
    ):
        super().__init__()
        self.words, self.filter_size, self.window = words, filter_size, window
        starts = [i not in special and s.startswith(WORD_START) for i, s in enumerate(symbols)]
        prints = [
            take_fingerprint("" if i in special else subword, hashes)
            for i, subword in enumerate(symbols)
        ]
        self.register_buffer("starts", torch.tensor(starts), persistent=False)
        self.register_buffer("fingerprints", torch.stack(prints), persistent=False)

    @property
    def features(self) -> int:
        """Features of a word: (2 window + 1) m."""
        return (2 * self.window + 1) * self.filter_size

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Count what the words hash to.

        Args:
            tokens: Indices of subwords. (B, L).

        Returns:
            Counts of the words that there are, one after the other, float32, (words, features);
            and where they are, (B, N).

        Raises:
            UserError: If a text has more than N words.
        """
        # Subwords before the first that begins a word belong to the first word.
        word = (self.starts[tokens].cumsum(1) - 1).clamp(min=0)
        if (longest := int(word.max()) + 1) > self.words:
            raise UserError(
                f"a text of {longest} words does not fit --max-words {self.words}: cut it, or "
                "train with more"
            )
        found = self.fingerprints[tokens]
        least = found.new_full((len(tokens), self.words, found.size(2)), NO_HASH)
        least = least.scatter_reduce(1, word.unsqueeze(2).expand_as(found), found, "amin")
        there = least[:, :, :1] < NO_HASH
        shape = len(tokens), self.words, self.filter_size
        counts = torch.zeros(shape, dtype=torch.float, device=tokens.device)
        counts.scatter_add_(2, least % self.filter_size, there.expand_as(least).float())
        there = there.squeeze(2)
        padded = F.pad(counts, (0, 0, self.window, self.window))
        around = [padded[:, i : i + self.words][there] for i in range(2 * self.window + 1)]
        return torch.cat(around, dim=1), there

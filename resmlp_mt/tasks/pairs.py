"""Batches of pairs, cut out of the data at once.

fairseq makes a tensor of every sentence, and copies it into its row of the batch. Each takes
microseconds. For batches as large as a GPU likes them this is longer than the GPU needs for them.
"""

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, ConcatDataset, LanguagePairDataset
from fairseq.data.indexed_dataset import MMapIndexedDataset


class Sentences:
    """The sentences of one language: files of token after token, which are read in place.

    Args:
        dataset: fairseq's, of one file or of several as one.
    """

    def __init__(self, dataset: MMapIndexedDataset | ConcatDataset):
        joined = isinstance(dataset, ConcatDataset)
        self.files = list(dataset.datasets) if joined else [dataset]
        # A file may be there more than once, as --upsample-primary wants it.
        self.ends = np.array(dataset.cumulative_sizes if joined else [len(dataset)])

    @staticmethod
    def can_read(dataset) -> bool:
        """Whether a data set is one of files that are read in place."""
        files = dataset.datasets if isinstance(dataset, ConcatDataset) else [dataset]
        return all(type(file) is MMapIndexedDataset for file in files)

    def cut(
        self, indices: np.ndarray, pad: int, left_pad: bool, multiple: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cut sentences out.

        Args:
            indices: (B,).
            pad: The number beside a sentence that is shorter than the longest.
            left_pad: Whether it stands before the sentence.
            multiple: The width is a multiple of it.

        Returns:
            The tokens, (B, T) int64, and the position that each has in its sentence, (B, T), which
            is negative where there is none.
        """
        which = np.searchsorted(self.ends, indices, side="right")
        begins, lengths = np.empty((2, len(indices)), dtype=np.int64)
        there = np.unique(which)
        for number in there:
            file, rows = self.files[number], which == number
            before = self.ends[number - 1] if number else 0
            places = (indices[rows] - before) % len(file)
            begins[rows] = file._index._pointers[places] // file._index._dtype_size
            lengths[rows] = file.sizes[places]
        width = -(-lengths.max() // multiple) * multiple
        positions = np.arange(width) - (width - lengths[:, None] if left_pad else 0)
        positions = np.where(positions < lengths[:, None], positions, -1)
        tokens = np.full(positions.shape, pad, dtype=np.int64)
        for number in there:
            index = self.files[number]._index
            everything = np.frombuffer(self.files[number]._bin_buffer, dtype=index.dtype)
            cells = (positions >= 0) & (which == number)[:, None]
            tokens[cells] = everything[(begins[:, None] + positions)[cells]]
        return tokens, positions


class PairsInBatches(BaseWrapperDataset):
    """fairseq's data set of pairs. Its batches are the same, and are there sooner.

    Args:
        dataset: One that `can_cut` says yes to.
    """

    def __init__(self, dataset: LanguagePairDataset):
        super().__init__(dataset)
        self.source, self.target = Sentences(dataset.src), Sentences(dataset.tgt)

    @staticmethod
    def can_cut(dataset) -> bool:
        """Whether a data set is of plain pairs, whose sentences are in the batches as they are."""
        return (
            type(dataset) is LanguagePairDataset
            and Sentences.can_read(dataset.src)
            and Sentences.can_read(dataset.tgt)
            and dataset.input_feeding
            and not (
                dataset.append_eos_to_target or dataset.append_bos or dataset.remove_eos_from_source
            )
            and dataset.buckets is dataset.align_dataset is dataset.constraints is None
            and dataset.src_lang_id is dataset.tgt_lang_id is None
        )

    def __getitems__(self, indices) -> dict:
        """The batch of these sentences, as fairseq's `collate` makes it.

        torch's DataLoader calls this with all indices of a batch, in place of one call for each.
        """
        if len(indices) == 0:  # where there are fewer batches left than workers
            return {}
        pairs = self.dataset
        indices, pad = np.asarray(indices), pairs.src_dict.pad()
        source, _ = self.source.cut(indices, pad, pairs.left_pad_source, pairs.pad_to_multiple)
        target, positions = self.target.cut(
            indices, pad, pairs.left_pad_target, pairs.pad_to_multiple
        )
        shifted = np.where(positions > 0, np.roll(target, 1, axis=1), pad)
        shifted[positions == 0] = pairs.eos
        # Sorted by torch as fairseq does, for the same order of those that are equally long.
        lengths = torch.from_numpy((source != pad).sum(1))
        lengths, order = lengths.sort(descending=True)
        ids, source, target, shifted = (
            torch.from_numpy(array)[order] for array in (indices, source, target, shifted)
        )
        return {
            "id": ids,
            "nsentences": len(indices),
            "ntokens": target.ne(pad).sum().item(),
            "net_input": {
                "src_tokens": source,
                "src_lengths": lengths,
                "prev_output_tokens": shifted,
            },
            "target": target,
        }

    def collater(self, samples, **kwargs) -> dict:
        """Leave whole batches as they are; make one of single pairs as fairseq does."""
        return samples if isinstance(samples, dict) else self.dataset.collater(samples, **kwargs)

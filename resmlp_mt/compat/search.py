"""The searches of fairseq-generate."""

from fairseq import search, token_generation_constraints
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.sequence_generator import SequenceGenerator

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError


def mend_diverse_beam() -> None:
    """Make --diverse-beam-groups work beyond the first batch.

    fairseq indexes the overlap of the groups, which has a row for each sentence of a batch, with
    the sentences' numbers in the data set.
    """

    @patch(search.DiverseBeamSearch, "step")
    def step_by_place(
        step, self, number, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None
    ):
        if number == 0:
            self.sentences = original_batch_idxs
        # Finished sentences leave the batch; the rows of the overlap stay.
        places = (original_batch_idxs[:, None] == self.sentences).int().argmax(1)
        return step(self, number, lprobs, scores, prev_output_tokens, places)


def bar_repeats_on_cpus() -> None:
    """Make --no-repeat-ngram-size work without fairseq's CUDA extension.

    fairseq looks for the end of a hypothesis at the end of its row, where the padding is, and so
    never finds a repeat.
    """

    @patch(NGramRepeatBlock, "_no_repeat_ngram")
    def bar(block, self, tokens, lprobs, bsz, beam_size, step):
        return block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)


def mend_constraints() -> None:
    """Let --constraints end in no traceback: without words, with empty ones, with too many."""

    @patch(search.LexicallyConstrainedBeamSearch, "init_constraints")
    def init(original, self, batch_constraints, beam_size):
        if batch_constraints is None:
            raise UserError(
                "--constraints: binarized data holds no words to constrain a translation to; give "
                "them after tabs in the lines for 'resmlp-mt translate' or 'resmlp-mt interactive'"
            )
        return original(self, batch_constraints, beam_size)

    @patch(token_generation_constraints, "unpack_constraints")
    def unpack(original, constraint_tensor):
        return [constraint for constraint in original(constraint_tensor) if len(constraint)]

    @patch(SequenceGenerator, "_generate")
    def generate(original, self, sample, prefix_tokens=None, constraints=None, bos_token=None):
        try:
            return original(self, sample, prefix_tokens, constraints, bos_token)
        except AssertionError:  # after the last step nothing is finished
            if constraints is None:
                raise
            raise UserError(
                "--constraints: a translation has no room for its words; allow longer ones "
                "(--max-len-b), or constrain it to fewer"
            ) from None

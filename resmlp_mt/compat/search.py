"""The searches of fairseq-generate."""

from fairseq import search

from resmlp_mt.compat.patching import patch


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

"""Which checkpoint a training goes on from, and whether it can."""

from fairseq.optim import FairseqOptimizer

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError


def refuse_misfit_optimizers() -> None:
    """Name an optimizer state that is of other sizes than the model, which would fail at a step.

    A model may be loaded into one of other sizes (a Toeplitz matrix, the matrices of an image
    model), but training cannot go on there with what the optimizer knew of the old one.
    """

    @patch(FairseqOptimizer, "load_state_dict")
    def load(load_state, self, *args, **kwargs):
        load_state(self, *args, **kwargs)
        for parameter, state in self.optimizer.state.items():
            for name in ("exp_avg", "sum", "momentum_buffer"):
                if name in state and state[name].shape != parameter.shape:
                    raise UserError(
                        "the checkpoint's optimizer knows a model of other sizes: train with the "
                        "sizes of the checkpoint, or start the optimizer anew with "
                        "--reset-optimizer, or from the weights alone with --finetune-from-model"
                    )

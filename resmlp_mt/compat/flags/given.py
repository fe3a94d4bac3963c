"""The flags of a program, as the checks read them."""

import ast
from argparse import Namespace


class Flags:
    """A view of a program's flags, in which those that it has not are None.

    What is set here is set in the program's flags.

    Attributes:
        of_program: What fairseq made of the command line.
    """

    def __init__(self, of_program: Namespace):
        vars(self)["of_program"] = of_program

    def __getattr__(self, name: str) -> object:
        return getattr(self.of_program, name, None)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.of_program, name, value)


def read_literal(text: str) -> object:
    """What Python takes a text for; None where that is nothing."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError):
        return None

"""Terms of the house: those that hold in every request."""

from pathlib import Path
from threading import Lock

from resmlp_mt.engines.codec import TextCodec
from resmlp_mt.errors import UserError
from resmlp_mt.serving.followed import FollowedFile
from resmlp_mt.translating.glossary import Glossary, read_glossary

TermsFile = FollowedFile[dict[str, str]]


def follow_terms(path: Path) -> TermsFile:
    """A file of terms that may change. Mistakes are those of `read_glossary`."""
    return FollowedFile(path, read_glossary, "--glossary", "the terms")


class House:
    """The terms of the house for one model, made ready once for all requests.

    Args:
        file: Where they stand.
        codec: The model's.

    Raises:
        UserError: If the model cannot say one; names the file.
    """

    def __init__(self, file: TermsFile, codec: TextCodec):
        self.file, self.codec, self.lock = file, codec, Lock()
        self.known = file.content
        try:
            self.glossary = Glossary(self.known, codec, must=False)
        except UserError as error:
            raise UserError(f"{file.flag} {self._name_file(error)}") from None

    def read(self) -> Glossary:
        """The terms now. They stay as they were where the model cannot say a new one."""
        with self.lock:  # who comes while new ones are made ready waits for them
            known = self.file.read()
            if known is not self.known:
                self.known = known
                try:
                    self.glossary = Glossary(known, self.codec, must=False)
                except UserError as error:
                    self.file.keep(self._name_file(error))
            return self.glossary

    def _name_file(self, error: UserError) -> str:
        return f"{self.file.path}: {str(error).removeprefix('glossary: ')}"

"""What a user can put right: the command line prints it alone and exits with status 2."""


class UserError(Exception):
    """A mistake in input, files or flags; the message says what, where and what to do."""

"""What argparse says of wrong flags, without the hundreds of flags that fairseq has."""

import difflib
import re
import traceback
from argparse import ArgumentParser
from collections.abc import Callable

from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

from resmlp_mt.errors import UserError, name_some

# What argparse says of a value that is none of those that a flag takes.
_CHOICE = re.compile(r"argument (--[\w-]+)\S*: invalid choice: '(.*?)' \(")
# What a flag without a default has in fairseq's configuration.
_MISSING = re.compile(r"argument (--[\w-]+)\S*: invalid \w+ value: '\?\?\?'")
# What argparse says of a value that is no list.
_NO_LIST = re.compile(r"argument (--[\w-]+)\S*: invalid <lambda> value: '(.*)'")


def name_what_fails(parse: Callable, *args, **kwargs):
    """Parse, and name the flag whose value fairseq evaluates as Python, and cannot."""
    try:
        return parse(*args, **kwargs)
    except SyntaxError as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code is ArgumentParser._get_value.__code__:
                flag = frame.f_locals["action"].option_strings[0]
                raise _want_numbers(flag, frame.f_locals["arg_string"]) from None
        raise


def refuse(parser: ArgumentParser, error: Callable, arch: str | None, message: str) -> None:
    """Say what is wrong without the hundreds of flags that fairseq has."""
    if arch and message.startswith("unrecognized arguments: "):
        flags, known = re.findall(r"--[\w-]+", message), parser._option_string_actions
        near = [name for flag in flags for name in difflib.get_close_matches(flag, known, 1, 0.78)]
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        raise UserError(
            f"{message}; neither --arch {arch} nor what else was chosen has such flags (--help)"
            f"{meant}"
        )
    if match := _CHOICE.match(message):
        flag, given = match.groups()
        if arch and (own := _list_choices(arch, flag)):
            others = [name for name in ARCH_MODEL_REGISTRY if given in _list_choices(name, flag)]
            taken = f"; {given} is for {name_some(others)}" if others else ""
            raise UserError(f"{flag} {given}: --arch {arch} takes {', '.join(own)}{taken}")
        near = difflib.get_close_matches(given, re.findall(r"'([\w-]+)'", message)[1:])
        meant = f"; did you mean {', '.join(near)}?" if near else ";"
        raise UserError(f"{flag} {given}: there is none of that name{meant} --help lists them")
    if match := _NO_LIST.match(message):
        raise _want_numbers(*match.groups())
    if missing := _MISSING.match(message):
        raise UserError(f"{missing[1]} is missing")
    if message.startswith("argument "):
        raise UserError(message + (f", with --arch {arch}" if arch else ""))
    error(message)


def _list_choices(arch: str, flag: str) -> list[str]:
    """What a flag of an architecture may be; nothing if any value will do, or it has no such."""
    config = MODEL_DATACLASS_REGISTRY.get(arch)
    known = getattr(config, "__dataclass_fields__", {}).get(flag[2:].replace("-", "_"))
    values = known and getattr(known.type, "__members__", {})
    return [str(value) for value in (values or {}).values()]


def _want_numbers(flag: str, given: str) -> UserError:
    return UserError(f"{flag} '{given}': give a number, or several with commas between")

"""The class or function of the user's own that an option's import path names."""

import importlib
from typing import Any

from hoodie.errors import InvalidOption


def imported(path: str, what: str, kind: str) -> Any:
    """The attribute of a module that "package.module:name" names.

    what    names the option and its value, for errors
    kind    such as "function", for errors
    Raises  InvalidOption when the path has another form, or cannot be imported
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise InvalidOption(f"{what}: expected an import path such as 'package.module:{kind}'")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise InvalidOption(f"{what} cannot be imported: {problem}") from problem

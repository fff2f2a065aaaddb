"""The page of all errors and warnings, docs/errors.md, made from their classes.

`python -m tools.docs.errors_page` prints it.
"""

import inspect
import sys
from collections.abc import Iterator

from hoodie import errors

_PAGE = """\
# Errors and warnings

<!-- Generated from the classes of hoodie.errors: python -m tools.docs.errors_page > docs/errors.md -->

Every error that Hoodie raises on purpose is a `HoodieError`, and every warning a `HoodieWarning`; all of them are in
`hoodie.errors`. Classes differ by what a caller can do. Some are also of a class that Python has for the case, such as
`ValueError`.

```python
import warnings

from hoodie.errors import HoodieError, HoodieWarning, WriteConflict

warnings.simplefilter("error", HoodieWarning)  # every warning is an error
warnings.simplefilter("default", HoodieWarning)  # as Python has it
```

## Errors

```text
{errors}
```

{errors_meanings}

## Warnings

```text
{warnings}
```

{warnings_meanings}
"""


def page() -> str:
    """The page as Markdown."""
    return _PAGE.format(
        errors="\n".join(_tree(errors.HoodieError)),
        errors_meanings=_meanings(errors.HoodieError),
        warnings="\n".join(_tree(errors.HoodieWarning)),
        warnings_meanings=_meanings(errors.HoodieWarning),
    )


def public() -> list[type[BaseException]]:
    """The classes of `hoodie.errors`, by name."""
    return [found for _, found in sorted(vars(errors).items()) if isinstance(found, type)]


def _children(parent: type[BaseException]) -> list[type[BaseException]]:
    return [error for error in public() if parent in error.__bases__]


def _tree(parent: type[BaseException], indent: str = "", branch: str = "") -> Iterator[str]:
    others = [base.__name__ for base in parent.__bases__ if base not in public() and base is not Exception]
    yield f"{branch}{parent.__name__}" + (f" ({', '.join(others)})" if others else "")
    children = _children(parent)
    for child in children:
        last = child is children[-1]
        yield from _tree(child, indent + ("    " if last else "│   "), indent + ("└── " if last else "├── "))


def _meanings(parent: type[BaseException]) -> str:
    lines = ["| class | what happened |", "|---|---|"]
    for error in public():
        if issubclass(error, parent):
            meaning = (inspect.getdoc(error) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            lines.append(f"| `{error.__name__}` | {meaning} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())

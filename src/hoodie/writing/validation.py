"""Who checks a commit before it is published, where its options ask for that."""

from __future__ import annotations

from collections.abc import Callable

from hoodie.commit.transaction import Transaction
from hoodie.config.options import Options
from hoodie.config.validators import validations
from hoodie.errors import InvalidOption
from hoodie.model.commit import CommitMetadata

#: Runs the queries of the options on the table as the commit would leave it. Raises ValidationFailed
Validate = Callable[[Transaction, CommitMetadata, Options], None]


def validator(options: Options, validate: Validate | None) -> Validate | None:
    """What is to be called before publication; None: the options ask for nothing.

    validate  of the engine; None: it evaluates no SQL
    Raises    InvalidOption as `validations`, and where the engine evaluates no SQL
    """
    if not validations(options):
        return None
    if validate is None:
        raise InvalidOption(
            "hoodie.precommit.validators: their queries are evaluated by Spark, and the commit would pass unchecked: "
            "write with a session, or leave the option out"
        )
    return validate

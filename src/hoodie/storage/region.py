"""An S3 bucket that is asked for in another region than its own: which one it says that it is in."""

from __future__ import annotations

import re
from typing import Any

from hoodie.storage.driver_errors import chain

_CODES = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect", "TemporaryRedirect"}
)
#: The answers to a HEAD have no code but their status; 400 may be anything else.
_STATUS_ALONE = frozenset({"301", "307"})
_HEADER = "x-amz-bucket-region"
_EXPECTED = re.compile(r"expecting '([a-z0-9-]+)'")


def wrong_region(error: BaseException) -> str | None:
    """The region of the bucket, where a call failed because it went to another; "" where the store does not say which;
    None for all other errors."""
    for cause in chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict) and (region := _of_answer(response)) is not None:
            return region
    return None


def _of_answer(response: dict[str, Any]) -> str | None:
    told = response.get("Error", {})
    code, status = str(told.get("Code", "")), response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    header = str(response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get(_HEADER, ""))
    expected = _EXPECTED.search(str(told.get("Message", "")))
    region = header or str(told.get("Region", "")) or (expected[1] if expected else "")
    if code == "AuthorizationHeaderMalformed":
        return region or None  # else it is the header itself that is malformed
    if code in _CODES or code in _STATUS_ALONE or status in (301, 307):
        return region
    return region if code == "400" and header else None

"""One rule for all protocols: a request holds its data, and names neither an address nor data stored at a provider."""

from collections.abc import Mapping

from dgm.gateway.allowed.walk import PROVIDER_SIDE, SCHEME, STORED, Rule, join_place, split_words
from dgm.gateway.translation.wire import BadRequest

OPAQUE = frozenset(
    # Keys with the agent's and the model's own data: schemas, tool inputs, commands. A provider fetches nothing for
    # them.
    split_words(
        "input arguments parameters input_schema output_schema input_examples schema json_schema action operation"
        " tabs state_changes logprobs"
    )
)
TEXTS = frozenset(
    split_words(
        "type role content id call_id tool_call_id tool_use_id name status output refusal reasoning_content signature"
        " encrypted_content phase summary description text thinking"
    )
)
"""Keys whose text values never cause a fetch."""
QUOTED = frozenset(("annotations", "citations"))
"""Keys of the sources that an earlier answer named; addresses there are plain text."""
ADDRESS = ("url", "uri", "urls", "uris", "href", "src", "s3location")
"""Endings of key names, without underscores, whose values a provider fetches."""
REFERENCE = (
    *("fileid", "fileids", "containerid", "vectorstoreid", "vectorstoreids", "skillid", "connectorid"),
    *("tunnelid", "assetid", "mediaid", "cachedcontent"),
)
"""Endings of key names whose values name stored data."""
HELD = frozenset(("container", "containers", "skills", "mcpservers", "vectorstores"))
"""Key names whose values are places at the provider."""
PROVIDED = frozenset(
    split_words(
        "googlesearch googlesearchretrieval googlemaps enterprisewebsearch urlcontext codeexecution codeinterpreter"
        " websearch webfetch filesearch mcp"
    )
)
"""Key names, without underscores, by which some servers offer their own tools."""
ENCODED = frozenset(("data", "filedata", "b64json", "base64"))
"""Key names that hold data; some servers also accept an address there."""
INLINE_SOURCES = ("base64", "text", "content")


def check_inline(value: object, place: str) -> None:
    """Raise ``BadRequest`` where a value names an address or stored data instead of holding the data.

    The rule holds at every depth and for unknown keys. It skips the inputs of the agent's own tools.

    Raises:
        BadRequest: the value names an address or stored data; the message names the place.
    """
    _check_addresses(value, place, quoted=False, local=False)


def _check_addresses(value: object, place: str, *, quoted: bool, local: bool) -> None:
    if isinstance(value, list):
        for at, one in enumerate(value):
            if isinstance(one, dict | list):
                _check_addresses(one, f"{place}[{at}]", quoted=quoted, local=local)
    elif isinstance(value, dict):
        for key, one in value.items():
            if not one or key in OPAQUE or (key in TEXTS and isinstance(one, str)):
                continue
            name = key.replace("_", "").replace("-", "").lower()
            if (
                name in PROVIDED
                or (name in HELD and not (local and name == "skills"))
                or name.endswith(REFERENCE)
            ):
                reason = PROVIDER_SIDE if name in PROVIDED else STORED
                raise BadRequest(
                    f"{join_place(place, key)} is not offered here: {reason}", "unsupported_content"
                )
            if name.endswith(ADDRESS) and not quoted:
                _check_held_data(one, join_place(place, key))
            elif name in SPECIAL and not quoted and not (key == "data" and value.get("type") == "text"):
                SPECIAL[name](one, join_place(place, key))
            if isinstance(one, dict | list):
                within = local or name == "environment"
                _check_addresses(one, join_place(place, key), quoted=quoted or key in QUOTED, local=within)


def _check_held_data(value: object, place: str) -> None:
    """Check a value where an address may stand: walk objects further, and accept only texts that are data."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one[:5].lower() != "data:":
            raise BadRequest(
                f"{place} is an address or a name; send the data inline, as a data: URL",
                "unsupported_content",
            )


def check_not_address(value: object, place: str) -> None:
    """Raise ``BadRequest`` where an address stands in place of data."""
    if isinstance(value, str) and SCHEME.match(value[:200]):
        raise BadRequest(f"{place} is an address; send the data inline", "unsupported_content")


def _check_direct(value: object, place: str) -> None:
    if isinstance(value, dict) and value.get("type") != "direct":
        raise BadRequest(f"{place} is not offered here: {PROVIDER_SIDE}", "unsupported_content")


def _check_local(value: object, place: str) -> None:
    if isinstance(value, dict) and value.get("type") != "local":
        raise BadRequest(
            f"{place} must be of the type 'local': a container is the provider's", "unsupported_content"
        )


def check_source(value: object, place: str) -> None:
    """Raise ``BadRequest`` where a source is another thing than inline data."""
    if isinstance(value, dict) and value.get("type") not in INLINE_SOURCES:
        kind = repr(str(value.get("type"))[:40])
        told = f"{place} is of the type {kind}; only data that is sent inline is offered here"
        raise BadRequest(told, "unsupported_content")


SPECIAL: Mapping[str, Rule] = {
    "caller": _check_direct,
    "environment": _check_local,
    "source": check_source,
    **dict.fromkeys(ENCODED, check_not_address),
}
"""Map of key name to the rule for its value."""

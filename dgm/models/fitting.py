"""The body of a try: an agent's request with the settings' additions, in the form that the model accepts."""

from typing import Any

from dgm.messages import JsonObject, WireProtocol
from dgm.models.access import Access
from dgm.models.extras import default_effort
from dgm.models.tries import CallInProgress, estimate_input
from dgm.wires import WIRES


def fit_body(sending: CallInProgress, own_name: str, access: Access) -> JsonObject:
    """Return the body of the next try of a call.

    Args:
        sending: the call, with the abilities that are known of the model now.
        own_name: the provider's own name of the model.
        access: the settings.
    """
    request, abilities = sending.request, sending.known
    wire = WIRES[request.protocol]
    body: dict[str, Any] = {**abilities.drop_form(request), "model": own_name, **access.always}
    if body.get("stream") and not access.stream:
        body["stream"] = False
        body.pop("stream_options", None)
    if body.get("stream") and request.protocol is WireProtocol.CHAT:
        options = body.get("stream_options")
        body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    asked = default_effort(wire.mended_request(body), request.protocol, access.reasoning_effort)
    fitted = abilities.apply(asked, request.protocol)
    wished, room = wire.output_limit(fitted), sending.room
    if room is None:
        room = abilities.room(estimate_input(fitted))
    if access.half_context and abilities.context is not None:
        half = max(abilities.context // 2, 1)
        room = half if room is None else min(room, half)
    if wished is not None and room is not None and room < wished:
        return wire.limited(fitted, room)
    return fitted

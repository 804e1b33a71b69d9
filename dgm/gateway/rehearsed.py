"""The calls of a dry run: which protocols could carry them, and how many tokens a turn costs."""

from collections.abc import Iterable, Mapping

from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_call
from dgm.messages import JsonObject, Request, Role, WireProtocol, WireRequest
from dgm.protocols import DryCalls
from dgm.wires.wire import Wire


class RehearsedCalls:
    """The calls of one dry run.

    Attributes:
        other_models: names of other models that the lent one answered for, in order.
        left_out: names of what is left out of the calls to every model, in order.
    """

    def __init__(self) -> None:
        self.other_models: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self._untranslatable: dict[WireProtocol, str] = {}
        self._turn_tokens = 0
        self._requests: list[WireRequest] = []

    def note(self, wire: Wire, body: JsonObject, tokens: int, sent: WireRequest, request: Request) -> None:
        """Note a call that its own protocol allows, and try to translate it.

        Args:
            wire: its protocol.
            body: its body, as ``read_document`` gives it.
            tokens: estimate of its input tokens.
            sent: the call as it would pass.
            request: the call in dgm's own form.
        """
        self._requests.append(sent)
        if all(message.role is not Role.ASSISTANT for message in request.messages):
            self._turn_tokens = max(self._turn_tokens, tokens)
        if self._untranslatable.setdefault(wire.protocol, ""):
            return
        try:
            parse_call(wire, body)
        except BadRequest as refusal:
            self._untranslatable[wire.protocol] = str(refusal)

    def summarise(self, refused: Mapping[str, str], left_out: Iterable[str]) -> DryCalls:
        """Return what the calls showed.

        Args:
            refused: map of code to first message of the refused requests.
            left_out: names of what is left out of the others, translated or not.
        """
        return DryCalls(
            dict(self._untranslatable),
            tuple(self.other_models),
            self._turn_tokens,
            dict(refused),
            tuple(self.left_out),
            tuple(name for name in left_out if name not in self.left_out),
            tuple(self._requests),
        )

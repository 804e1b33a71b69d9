"""OpenAI's Responses, in the dialects of OpenAI itself and of compatible servers."""

from dgm.messages import WireProtocol
from dgm.wires import responses_answer, responses_turns
from dgm.wires.responses_stream import ResponsesReader
from dgm.wires.wire import Wire

RESPONSES = Wire(
    protocol=WireProtocol.RESPONSES,
    path="/responses",
    turns="input",
    reader=ResponsesReader,
    mended=responses_answer.mend_answer,
    check=responses_answer.check,
    split=responses_answer.split,
    usage=responses_answer.usage,
    stop=responses_answer.stop,
    output_limit=responses_turns.output_limit,
    limited=responses_turns.set_output_limit,
    choices=responses_turns.choices,
    mended_request=responses_turns.mend_request,
    read_request=responses_turns.read_request,
    read_reply=responses_turns.read_reply,
    write_request=responses_turns.write_request,
)

"""Anthropic's Messages, in the dialects of Anthropic itself and of compatible servers."""

from dgm.messages import WireProtocol
from dgm.wires import messages_answer, messages_turns, messages_writing
from dgm.wires.messages_stream import MessagesReader
from dgm.wires.wire import Wire

MESSAGES = Wire(
    protocol=WireProtocol.MESSAGES,
    path="/messages",
    turns="messages",
    reader=MessagesReader,
    mended=messages_answer.mend_answer,
    check=messages_answer.check,
    split=messages_answer.split,
    usage=messages_answer.usage,
    stop=messages_answer.stop,
    output_limit=messages_turns.output_limit,
    limited=messages_turns.set_output_limit,
    choices=messages_turns.choices,
    mended_request=messages_turns.mend_request,
    read_request=messages_turns.read_request,
    read_reply=messages_turns.read_reply,
    write_request=messages_writing.write_request,
)

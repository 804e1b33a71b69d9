"""OpenAI's Chat Completions, in the dialects of OpenAI itself and of the many compatible servers."""

from dgm.messages import WireProtocol
from dgm.wires import chat_answer, chat_turns
from dgm.wires.chat_stream import ChatReader
from dgm.wires.wire import Wire

CHAT = Wire(
    protocol=WireProtocol.CHAT,
    path="/chat/completions",
    turns="messages",
    reader=ChatReader,
    mended=chat_answer.mend_answer,
    check=chat_answer.check,
    split=chat_answer.split,
    usage=chat_answer.usage,
    stop=chat_answer.stop,
    output_limit=chat_turns.output_limit,
    limited=chat_turns.set_output_limit,
    choices=chat_turns.choices,
    mended_request=chat_turns.mend_request,
    read_request=chat_turns.read_request,
    read_reply=chat_turns.read_reply,
    write_request=chat_turns.write_request,
)

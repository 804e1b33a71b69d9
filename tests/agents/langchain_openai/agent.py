"""An agent on LangChain's ChatOpenAI: what to change is asked for as structured output, in both of its ways."""

import json
import os
import sys
from pathlib import Path

os.environ |= {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field


class Place(BaseModel):
    """Where the fault is."""

    path: str = Field(description="The file.")
    reason: str


class Edit(BaseModel):
    """A change of a file."""

    old: str
    new: str


def main(job):
    model = ChatOpenAI(model=job["model"], temperature=0.2, max_retries=0)
    talk = [("system", "You are a coding agent."), ("human", job["problem"])]
    place = model.with_structured_output(Place, method="json_schema", strict=True).invoke(talk)
    path = Path(job["workdir"], place.path)
    talk = [*talk, ("human", f"{place.path} holds:\n{path.read_text()}")]
    edit = model.with_structured_output(Edit, method="function_calling").invoke(talk)
    path.write_text(path.read_text().replace(edit.old, edit.new))


if __name__ == "__main__" and "--check" not in sys.argv:
    main(json.loads(Path(sys.argv[1]).read_text()))

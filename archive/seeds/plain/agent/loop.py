"""The control loop: ask the model, run the tool it asks for, repeat."""

from agent import model, prompts, tools

MAX_STEPS = 10


def work(job):
    """Work on a job until the model stops calling tools; 0 if it finished, 1 at the step limit."""
    messages = [
        {"role": "system", "content": prompts.system(job["kind"])},
        {"role": "user", "content": prompts.first_message(job)},
    ]
    for step in range(MAX_STEPS):
        answer = model.reply(messages, tools.SCHEMAS)
        messages.append(answer)
        calls = answer.get("tool_calls") or []
        print("step %d: %s" % (step + 1, answer.get("content") or ""))
        if not calls:
            return 0
        answer["tool_calls"] = calls[:1]
        for call in answer["tool_calls"]:
            result = tools.run(call["function"]["name"], call["function"]["arguments"], job["workdir"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    print("step limit reached")
    return 1

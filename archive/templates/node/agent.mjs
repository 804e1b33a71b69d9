// A coding agent in JavaScript: one tool and one loop. `node agent.mjs JOB`, or `node agent.mjs --check`.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
const settings = JSON.parse(read("settings.json"));
const system = read("prompts/system.md");
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const bash = { type: "function", function: { name: "bash", description: "Run a command of bash.", parameters } };

function run(command, cwd) {
  const words = [String(settings.command_s), "bash", "-c", `exec 2>&1\n${command}`];
  const done = spawnSync("timeout", words, { cwd, input: "", encoding: "utf8", maxBuffer: 1e8 });
  return `exit ${done.status}\n${done.stdout.slice(-settings.shown_chars)}`;
}

async function ask(model, messages) {
  const address = `${process.env.OPENAI_BASE_URL}/chat/completions`;
  const headers = { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" };
  const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify({ model, messages, tools: [bash] }) });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return (await answer.json()).choices[0].message;
}

async function work(job) {
  const messages = [{ role: "system", content: system }, { role: "user", content: job.problem }];
  for (let step = 0; step < settings.steps; step++) {
    const said = await ask(job.model, messages);
    console.log(said.content ?? "");
    messages.push(said);
    if (!said.tool_calls?.length) return;
    for (const call of said.tool_calls) {
      const content = run(String(JSON.parse(call.function.arguments).command), job.workdir);
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
}

if (!process.argv.includes("--check")) await work(JSON.parse(readFileSync(process.argv[2], "utf8")));

// Tasks and agents in the order in which they are shown, and the verdicts that were fetched so far.

export const LETTERS = { y: "resolved", n: "unresolved", i: "invalid: no verdict so far", r: "under way", ".": "not tried yet" };
const BLOCK = 256; // agents in one request
const MOST_KEPT = 20000; // agents whose verdicts are kept

export class MatrixStore {
  // ``agents`` is the TreeStore with the agents' tallies.
  constructor(agents, base) {
    this.agents = agents;
    this.base = base;
    this.tasks = { name: [], resolved: [], n: [], state: [] };
    this.taskOrder = [];
    this.agentOrder = [];
    this.unsorted = 0; // newborns at the end of the order
    this._cells = new Map();
    this._fetching = new Set();
  }

  // "y", "n", "i", "r", "." or "" where it is not known yet; rows and columns are positions in the order.
  cell(row, column) {
    return this._cells.get(this.agentOrder[column])?.[this.taskOrder[row]] ?? "";
  }

  setTasks(tasks, order) {
    this.tasks = tasks;
    const numbers = tasks.name.map((_, task) => task);
    const rate = task => (tasks.n[task] ? tasks.resolved[task] / tasks.n[task] : -1);
    // The easiest first; those that nobody tried come last.
    if (order === "difficulty") numbers.sort((a, b) => rate(b) - rate(a) || tasks.n[b] - tasks.n[a] || a - b);
    this.taskOrder = numbers;
  }

  sortAgents(order) {
    const { agents } = this;
    const numbers = order === "line" ? [...agents.line(agents.best)].reverse() : Array.from({ length: agents.count }, (_, id) => id);
    if (order === "rate") {
      const rate = Float64Array.from(numbers, id => (agents.n[id] ? agents.resolved[id] / agents.n[id] : -1));
      numbers.sort((a, b) => rate[b] - rate[a] || agents.n[b] - agents.n[a] || a - b);
    }
    this.agentOrder = numbers;
    this.unsorted = 0;
    this._order = order;
  }

  // Newborns come last, so that nothing moves under the user's hand; ``sortAgents`` puts them where they belong.
  appendNewborns() {
    if (this._order === "line") return;
    for (let id = this.agentOrder.length; id < this.agents.count; id++) {
      this.agentOrder.push(id);
      this.unsorted++;
    }
  }

  // Forget verdicts that may have changed.
  forget(agents) {
    for (const id of agents) this._cells.delete(id);
  }

  // Fetch what is missing of some columns; ``onArrival`` is called after each answer.
  async need(from, to, onArrival) {
    const missing = this.agentOrder.slice(from, to).filter(id => !this._cells.has(id) && !this._fetching.has(id));
    for (let n = 0; n < missing.length; n += BLOCK) this._fetch(missing.slice(n, n + BLOCK), onArrival);
  }

  async _fetch(ids, onArrival) {
    ids.forEach(id => this._fetching.add(id));
    try {
      const answer = await fetch(`${this.base}/data/cells.json?agents=${ids}`);
      if (!answer.ok) return;
      if (this._cells.size > MOST_KEPT) this._cells.clear();
      for (const [id, letters] of Object.entries((await answer.json()).cells)) this._cells.set(Number(id), letters);
    } catch {
      return; // the connection is lost; the next drawing asks again
    } finally {
      ids.forEach(id => this._fetching.delete(id));
    }
    onArrival();
  }
}

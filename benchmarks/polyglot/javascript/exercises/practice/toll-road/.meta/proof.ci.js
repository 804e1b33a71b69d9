export class Account {
  #entered = null;
  #total = 0;
  #longest = 0;

  enter(gate) {
    if (this.#entered !== null) {
      throw new Error('the car is on the road already');
    }
    this.#entered = Account.#known(gate);
  }

  leave(gate) {
    if (this.#entered === null) {
      throw new Error('the car is not on the road');
    }
    const ride = Math.abs(Account.#known(gate) - this.#entered);
    this.#entered = null;
    const price = ride ? 3 * ride + 2 : 0;
    this.#total += price;
    this.#longest = Math.max(this.#longest, ride);
    return price;
  }

  get total() {
    return this.#total;
  }

  get longest() {
    return this.#longest;
  }

  static #known(gate) {
    if (gate < 0) {
      throw new Error('there is no such gate');
    }
    return gate;
  }
}

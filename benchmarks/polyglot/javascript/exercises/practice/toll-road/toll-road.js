export class Account {
  enter(gate) {
    throw new Error('Write this method');
  }

  leave(gate) {
    throw new Error('Write this method');
  }

  get total() {
    throw new Error('Write this property');
  }

  get longest() {
    throw new Error('Write this property');
  }
}

import { Account } from './toll-road';

describe('Toll road', () => {
  let account;
  const ride = (first, last) => {
    account.enter(first);
    return account.leave(last);
  };

  beforeEach(() => {
    account = new Account();
  });

  test('a new account is empty', () => {
    expect([account.total, account.longest]).toEqual([0, 0]);
  });

  xit('has a price for a ride', () => {
    expect(ride(10, 30)).toBe(62);
  });

  xit('does not mind the direction', () => {
    expect(ride(30, 10)).toBe(62);
  });

  xit('takes nothing at the same gate', () => {
    expect(ride(7, 7)).toBe(0);
  });

  xit('sums up', () => {
    ride(0, 1);
    ride(4, 2);
    ride(5, 5);
    expect([account.total, account.longest]).toEqual([13, 2]);
  });

  it.skip('cannot be entered twice', () => {
    account.enter(1);
    expect(() => account.enter(2)).toThrow('the car is on the road already');
    expect(account.leave(2)).toBe(5);
  });

  it.skip('cannot be left first', () => {
    expect(() => account.leave(2)).toThrow('the car is not on the road');
  });

  test.skip('is not changed by a wrong gate', () => {
    account.enter(1);
    expect(() => account.leave(-1)).toThrow('there is no such gate');
    expect(account.leave(2)).toBe(5);
  });
});

import { isValid, label } from './luggage-tag';

describe('label', () => {
  test('pads the number', () => {
    expect(label('QX', 1234)).toBe('QX0012342');
  });

  xtest('takes the largest number', () => {
    expect(label('AZ', 999999)).toBe('AZ9999990');
  });

  xtest('takes zero', () => {
    expect(label('AA', 0)).toBe('AA0000000');
  });

  xtest('refuses an airline in lower case', () => {
    expect(() => label('qx', 1)).toThrow('an airline has two upper-case letters');
  });

  xtest.each([-1, 1000000])('refuses the number %d', (number) => {
    expect(() => label('QX', number)).toThrow('a number has up to six digits');
  });
});

describe('isValid', () => {
  xtest('knows a printed tag', () => {
    expect(isValid('QX0012342')).toBe(true);
  });

  xtest('sees a wrong check digit', () => {
    expect(isValid('QX0012343')).toBe(false);
  });

  xtest('sees that a text is too long', () => {
    expect(isValid('QX00123420')).toBe(false);
  });
});

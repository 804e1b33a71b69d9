export const label = (airline, number) => {
  if (!/^[A-Z]{2}$/.test(airline)) {
    throw new Error('an airline has two upper-case letters');
  }
  if (number < 0 || number > 999999) {
    throw new Error('a number has up to six digits');
  }
  return `${airline}${String(number).padStart(6, '0')}${number % 7}`;
};

export const isValid = (text) => {
  const found = /^[A-Z]{2}([0-9]{6})([0-9])$/.exec(text);
  return found !== null && Number(found[1]) % 7 === Number(found[2]);
};

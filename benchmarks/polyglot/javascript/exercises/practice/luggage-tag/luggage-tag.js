export const label = (airline, number) => {
  throw new Error('Write this function');
};

export const isValid = (text) => {
  throw new Error('Write this function');
};

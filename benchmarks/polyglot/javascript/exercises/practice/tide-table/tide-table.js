export const highs = (heights) => {
  throw new Error('Write this function');
};

export const lows = (heights) => {
  throw new Error('Write this function');
};

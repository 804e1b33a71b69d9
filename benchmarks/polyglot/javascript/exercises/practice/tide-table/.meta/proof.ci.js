export const highs = (heights) => {
  const steps = heights
    .map((height, position) => ({ height, position }))
    .filter(({ height, position }) => position === 0 || height !== heights[position - 1]);
  return steps
    .filter(({ height }, n) => height > steps[n - 1]?.height && height > steps[n + 1]?.height)
    .map(({ position }) => position);
};

export const lows = (heights) => highs(heights.map((height) => -height));

/** The histories of each run of the tests: all seeds below 2,000 by which a mistake was ever found are among them. */
export const FAST = { from: 0, seeds: 150 }

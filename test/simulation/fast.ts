/** The histories of each run of the tests, beside those that ever found a mistake. */
export const FAST = { from: 0, seeds: 80 }

/** How much each scenario does. */
export interface Sizes {
  rounds: number
  /** Of the list that is walked without latency into an empty mirror. */
  orders: number
  /** Of the same where answers are packed. */
  packedOrders: number
  /** Of the list that is walked again. */
  unchangedOrders: number
  latencyMs: number
  /** Of the list that is walked with latency. */
  distantOrders: number
  /** How many organizations are synced at the same time, and of how many orders each. */
  busy: { organizations: number; orders: number; concurrency: number }
  /** Organizations of which nothing is due. */
  idle: number
  /** Rounds of what takes some tens of milliseconds. */
  startRounds: number
  /** Simulated minutes of requests, and as many times as there are rounds. */
  budgetMinutes: number
  /** What only a large mirror shows: null where it is left out. */
  large: { orders: number; organizations: number; rounds: number } | null
}

const NORMAL: Sizes = {
  rounds: 5,
  orders: 100_000,
  // These are smaller so that all of it takes less than ten minutes.
  packedOrders: 25_000,
  unchangedOrders: 50_000,
  latencyMs: 20,
  distantOrders: 10_000,
  busy: { organizations: 50, orders: 1000, concurrency: 16 },
  idle: 500,
  startRounds: 15,
  budgetMinutes: 30,
  large: null,
}

/** For who wants to know soon. */
const QUICK: Sizes = {
  ...NORMAL,
  rounds: 3,
  orders: 3000,
  packedOrders: 3000,
  unchangedOrders: 3000,
  distantOrders: 750,
  busy: { organizations: 20, orders: 250, concurrency: 16 },
  idle: 50,
  startRounds: 5,
}

const FULL: Sizes = {
  ...NORMAL,
  packedOrders: 100_000,
  unchangedOrders: 100_000,
  large: { orders: 1_000_000, organizations: 500, rounds: 5 },
}

/** For the tests: whether every row comes, whatever its figures are. */
const SMOKE: Sizes = {
  rounds: 1,
  orders: 200,
  packedOrders: 200,
  unchangedOrders: 200,
  latencyMs: 1,
  distantOrders: 30,
  busy: { organizations: 3, orders: 30, concurrency: 2 },
  idle: 2,
  startRounds: 1,
  budgetMinutes: 2,
  large: { orders: 200, organizations: 2, rounds: 1 },
}

export const SIZES = { normal: NORMAL, quick: QUICK, full: FULL, smoke: SMOKE }

export interface StepOptions {
  now: () => number
  sleep: (ms: number) => Promise<void>
  signal: AbortSignal
}

/** Rows of the first step, which nothing is known of yet, and of any other. */
const FIRST = 64
const MOST = 8192

/** Rows of a step that deletes here and there: each may touch pages of its own, all of which a commit has to write. */
export const SCATTERED = 1024

/** A step that took less is followed by a larger one, one that took more by a smaller one. Milliseconds. */
const SHORT_MS = 15
const LONG_MS = 40

/** The longest rest between two steps. Milliseconds. */
const REST_MS = 100

/**
 * Does long work on the file a little at a time: `step` takes on up to so many rows, and answers whether all is done. In
 * between, everything else of this process has its turn; and since each rest is half as long as the step before, so have
 * others who wait for the file's lock. False when the process was told to stop before the end; the first step is made
 * even then.
 */
export async function inSteps(
  { now, sleep, signal }: StepOptions,
  step: (rows: number) => boolean | Promise<boolean>,
  most = MOST,
): Promise<boolean> {
  for (let rows = FIRST; ; ) {
    const began = now()
    if (await step(rows)) return true
    if (signal.aborted) return false
    const took = now() - began
    rows = Math.min(nextRows(rows, took), most)
    await sleep(Math.max(1, Math.min(Math.round(took / 2), REST_MS)))
  }
}

/** How many rows a step may take on after one with so many rows took so long. */
export function nextRows(rows: number, tookMs: number): number {
  if (tookMs < SHORT_MS) return Math.min(rows * 2, MOST)
  return tookMs > LONG_MS ? Math.max(1, Math.floor((rows * SHORT_MS) / tookMs)) : rows
}

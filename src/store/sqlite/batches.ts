/** What work in batches takes. */
export interface BatchOptions {
  sleep: (ms: number) => Promise<void>
  /** Aborted when the process is told to stop. */
  signal: AbortSignal
}

/** Between two batches, so that other processes that wait for the file's lock get it. Milliseconds. */
const REST_MS = 20

/**
 * Does long work in transactions of some tens of milliseconds, with time for everything else in between. `batch` returns true when
 * nothing is left. Returns false when the process was told to stop before; the first batch is done even then.
 */
export async function inBatches(
  { sleep, signal }: BatchOptions,
  batch: () => boolean | Promise<boolean>,
): Promise<boolean> {
  for (;;) {
    if (await batch()) return true
    if (!signal.aborted) await sleep(REST_MS)
    if (signal.aborted) return false
  }
}

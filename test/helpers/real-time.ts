/** What waiting for a database needs; its waits are short. */
export function shortPatience(signal = new AbortController().signal) {
  return {
    elapsed: () => performance.now(),
    sleep: (ms: number) => new Promise<void>((wake) => setTimeout(wake, Math.min(ms, 50))),
    every: () => () => {},
    signal,
  }
}

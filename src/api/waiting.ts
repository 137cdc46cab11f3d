import type { PageObserver } from '../sync/types.ts'

/** Says what is waited for, and until when in epoch milliseconds. */
export type Tell = (reason: string, until: number) => void

/** A Tell that says nothing twice. */
export function createTell(observer: PageObserver): Tell {
  let said = ''
  return (reason, until) => {
    const saying = `${until} ${reason}`
    if (saying !== said) observer.onWait(reason, until)
    said = saying
  }
}

/** The promise, or as soon as the signal is aborted its reason: a turn in a line that nobody waits for any more. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

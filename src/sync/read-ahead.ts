import type { Question } from './coverage/state.ts'
import type { Page, PageObserver, PageSource } from './types.ts'

export interface ReadAheadOptions {
  source: PageSource
  observer: PageObserver
  /** Lets a new request leave the process. */
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/** Fetches the pages of one job, one at a time; the next one is in flight while the caller writes the last. */
export interface ReadAhead {
  /** Returns the page, which may be in flight already. Throws as `fetchPage` does. */
  take(question: Question): Promise<Page>
  /** Sends the request for the next `take`, which throws its failure. */
  request(question: Question): Promise<void>
  /** Aborts the pending request and waits until it settles, so that its cost is counted. */
  close(): Promise<void>
}

export function createReadAhead({ source, observer, yieldToEventLoop, signal }: ReadAheadOptions): ReadAhead {
  const stop = new AbortController()
  const stopped = AbortSignal.any([signal, stop.signal])
  let pending: Promise<Page> | null = null

  return {
    async take(question) {
      const page = await (pending ?? source.fetchPage(question.page, observer, stopped))
      pending = null
      return page
    },
    async request(question) {
      pending = source.fetchPage(question.page, observer, stopped)
      pending.catch(() => {})
      // Reading and writing the store block the process: the request must leave first.
      await yieldToEventLoop()
    },
    async close() {
      stop.abort()
      await pending?.catch(() => {})
    },
  }
}

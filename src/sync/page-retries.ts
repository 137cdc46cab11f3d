import type { Lease, PageRetry, Store } from './store.ts'
import type { PageSource } from './types.ts'

/** The source of a job, which saves what it asks for again and how long it waits: so others see why no page comes. */
export function notingRetries(
  source: PageSource,
  { store, lease, now }: { store: Pick<Store, 'noteRetry'>; lease: Lease; now: () => number },
): PageSource {
  return {
    ...source,
    async fetchPage(page, observer, signal, urgency) {
      let since: number | null = null
      let noted = Promise.resolve()
      const note = (retry: PageRetry | null) => {
        // A store that cannot be written ends the run at its next page; a note alone does not.
        noted = noted.then(() => store.noteRetry(lease, retry)).catch(() => {})
      }
      const onRetry = (error: string, delayMs: number) => {
        since ??= now()
        note({ since, until: now() + delayMs, error })
        observer.onRetry(error, delayMs)
      }
      try {
        return await source.fetchPage(page, { ...observer, onRetry }, signal, urgency)
      } finally {
        if (since !== null) {
          note(null)
          await noted
        }
      }
    },
  }
}

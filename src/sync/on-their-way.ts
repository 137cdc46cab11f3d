import type { Question } from './coverage/account.ts'
import type { Page, PageObserver, PageSource } from './types.ts'

export interface OnTheirWayOptions {
  source: PageSource
  observer: PageObserver
  now: () => number
  /** Lets what was begun have its turn: a request that was asked for has left then. */
  turn: () => Promise<void>
  signal: AbortSignal
}

/** The pages of one job between the moment they are asked for and that in which they are needed: one at a time. */
export interface OnTheirWay {
  /** The page that is asked for, now if it was not before. Throws as `fetchPage` does. */
  fetch(question: Question): Promise<Page>
  /** Writes a page, and asks for the one that will be needed next, if any, before that where it is worth it. */
  writeMeanwhile<T>(next: Question | null, write: () => Promise<T>): Promise<T>
  /** Stops what nobody will take, and waits for its end: not before then is everything told that it has cost. */
  giveUp(): Promise<void>
}

/**
 * Whether to ask for the next page before one is written. A process that is killed meanwhile has one page more to ask for
 * again, so it is done only where that is seldom, and worth it: where the list is long, and a server far away takes most of
 * the time. Milliseconds: of the last answers, the quickest of which counts, since on a busy machine any may be slow; and of
 * the last page's writing.
 */
export function isWorthAskingBefore(answersTook: readonly number[], writingTook: number): boolean {
  const quickest = Math.min(...answersTook)
  return answersTook.length >= LOOKED_AT && quickest >= 10 && quickest >= 4 * writingTook
}

const LOOKED_AT = 32

export function createOnTheirWay({ source, observer, now, turn, signal }: OnTheirWayOptions): OnTheirWay {
  const stop = new AbortController()
  const stopped = AbortSignal.any([signal, stop.signal])
  let coming: Promise<Page> | null = null
  let askedAt = 0
  let answersTook: number[] = []
  let writingTook = 0

  function ask(question: Question): Promise<Page> {
    askedAt = now()
    coming = source.fetchPage(question.page, observer, stopped)
    // Its failure is met when the page is needed, and not before.
    coming.catch(() => {})
    return coming
  }

  return {
    async fetch(question) {
      const page = await (coming ?? ask(question))
      coming = null
      answersTook = [...answersTook, now() - askedAt].slice(-LOOKED_AT)
      return page
    },
    async writeMeanwhile(next, write) {
      if (next && isWorthAskingBefore(answersTook, writingTook)) {
        void ask(next)
        // To write keeps the process busy: the request leaves first.
        await turn()
      }
      const begunAt = now()
      const written = await write()
      writingTook = now() - begunAt
      return written
    },
    async giveUp() {
      stop.abort()
      await coming?.catch(() => {})
    },
  }
}

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

/** What asking, and writing, has taken so far. Milliseconds. */
export interface Pace {
  /** Answers that have come, in all. */
  answers: number
  /** What the last of them took. */
  answersTook: readonly number[]
  /** What the last page's writing took. */
  writingTook: number
}

/**
 * Whether to ask for the next page before one is written. A process that is killed meanwhile has one page more to ask for
 * again, so it is done only where that is little, and worth it: after so many pages that one more is nothing; and earlier
 * where a server far away takes most of the time. Of its last answers the quickest counts, since on a busy machine any may
 * be slow.
 */
export function isWorthAskingBefore({ answers, answersTook, writingTook }: Pace): boolean {
  const quickest = Math.min(...answersTook)
  const isFar = answersTook.length >= LOOKED_AT && quickest >= 10 && quickest >= 4 * writingTook
  return isFar || answers >= MANY
}

const LOOKED_AT = 32

/** The list is longer than 25,000 items then. */
const MANY = 1000

export function createOnTheirWay({ source, observer, now, turn, signal }: OnTheirWayOptions): OnTheirWay {
  const stop = new AbortController()
  const stopped = AbortSignal.any([signal, stop.signal])
  let coming: Promise<Page> | null = null
  let askedAt = 0
  let pace: Pace = { answers: 0, answersTook: [], writingTook: 0 }

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
      const answersTook = [...pace.answersTook, now() - askedAt].slice(-LOOKED_AT)
      pace = { ...pace, answers: pace.answers + 1, answersTook }
      return page
    },
    async writeMeanwhile(next, write) {
      if (next && isWorthAskingBefore(pace)) {
        void ask(next)
        // To write keeps the process busy: the request leaves first.
        await turn()
      }
      const begunAt = now()
      const written = await write()
      pace = { ...pace, writingTook: now() - begunAt }
      return written
    },
    async giveUp() {
      stop.abort()
      await coming?.catch(() => {})
    },
  }
}

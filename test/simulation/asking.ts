import type { Observe, PageSource, RequestEvent } from '../../src/sync/types.ts'

/** What a page is asked for by. */
export type Reader = 'walk' | 'refresh'

let asking: Reader = 'walk'

/** Who asks for the page that is being sent for now. */
export function whoAsks(): Reader {
  return asking
}

/** The pages of a job as its readers ask for them: a request does not say itself whether it is a walk's. */
export function askedSource(source: PageSource): PageSource {
  return {
    ...source,
    fetchPage: (page, observe, signal, urgency) =>
      source.fetchPage(page, askedBy(urgency === undefined ? 'walk' : 'refresh', observe), signal, urgency),
  }
}

/** An observer is told of a request in the very moment in which it leaves. */
function askedBy(reader: Reader, observe: Observe<RequestEvent>): Observe<RequestEvent> {
  return (event) => {
    if (event.kind === 'request') asking = reader
    observe(event)
  }
}

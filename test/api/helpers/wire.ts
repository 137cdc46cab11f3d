import nock from 'nock'
import { afterEach, beforeEach, expect } from 'vitest'
import { BASE_URL, ORDERS } from './job.ts'

/** For each test of the file: no request leaves the machine, and each expected one is made, and no other. */
export function watchTheWire(): void {
  const strangers: string[] = []
  const note = ({ method, url }: Request) => {
    strangers.push(`${method} ${url}`)
  }

  beforeEach(() => {
    strangers.length = 0
    nock.disableNetConnect()
    nock.emitter.on('no match', note)
  })

  afterEach(() => {
    const unused = nock.pendingMocks()
    nock.emitter.off('no match', note)
    nock.abortPendingRequests()
    nock.cleanAll()
    nock.enableNetConnect()
    expect({ unused, strangers }).toEqual({ unused: [], strangers: [] })
  })
}

/** The next request for this page, once. */
export function foresee(page = 1, filters: Record<string, string> = {}): nock.Interceptor {
  return nock(BASE_URL)
    .get(ORDERS)
    .query({ ...filters, page: String(page) })
}

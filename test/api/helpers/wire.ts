import nock from 'nock'
import { afterEach, beforeEach, expect } from 'vitest'
import { createSetting, ORDERS, type Setting } from './api.ts'

const BASE_URL = 'https://admin.example.com'

/** An API at the wire for all tests of a file, in each of which the requests that it foresees are made, and no others. */
export function createWire() {
  /** The headers of each request. */
  const asked: Record<string, unknown>[] = []
  const strangers: string[] = []
  const note = ({ method, url }: Request) => {
    strangers.push(`${method} ${url}`)
  }
  beforeEach(() => {
    nock.disableNetConnect()
    nock.emitter.on('no match', note)
  })
  afterEach(() => {
    const left = [nock.pendingMocks(), strangers.splice(0)]
    nock.emitter.off('no match', note)
    nock.abortPendingRequests()
    nock.cleanAll()
    nock.enableNetConnect()
    asked.length = 0
    expect(left).toEqual([[], []])
  })
  return {
    url: BASE_URL,
    asked,
    /** One request for this page has this answer. */
    foresee(status: number, body: string, headers: Record<string, string> = {}, page = 1): void {
      nock(BASE_URL)
        .get(ORDERS)
        .query({ page: String(page) })
        .reply((request: Request) => {
          asked.push(Object.fromEntries(request.headers))
          return [status, body, headers]
        })
    },
    /** A client of it. */
    createSetting: (setting?: Setting) => createSetting(BASE_URL, setting),
  }
}

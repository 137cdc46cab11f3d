import { describe, expect, it } from 'vitest'
import { breaksOff, splitBody } from '../../src/api/body.ts'
import { createLinkReader } from '../../src/api/links.ts'
import { readEnvelope } from '../../src/api/page.ts'
import { readRateHeaders } from '../../src/api/rate/headers.ts'
import { errorOfStatus } from '../../src/api/response-errors.ts'
import { parseExact } from '../../src/json/exact.ts'
import { canonicalNumber } from '../../src/json/value.ts'
import { printableJson } from '../../src/text.ts'
import { createJob } from './helpers/job.ts'

// Texts that a server makes to keep the process busy, when no time-out and no signal is noticed: the time to read them must
// be linear in their length.

/** Processor time, which other processes do not lengthen. Reading the text once takes a hundredth of it. */
const LONGEST_MS = 1000

const LENGTH = 150_000

/** The most that Node accepts of all headers together. */
const MOST_OF_HEADERS = 16_000

const PIECES = [
  Array.from(' 0-.e/\\@:?#[{",;<'),
  ['//', '\\"', '""', '[1', ', ', '1.10,', 'a=1;', '"a";r=1;t=1,', '\u202e', '\\u0000', '"a":', '"data":'],
].flat()

function textsOf(length: number, pieces = PIECES): string[] {
  const texts = pieces.map((piece) => piece.repeat(length / piece.length))
  return texts.flatMap((text) => [text, `{"data":[${text}]}`])
}

const LINK = { baseUrl: 'https://admin.example.com', path: '/list', filters: { 'a[]': ['1', '2'] } }
const readLink = createLinkReader({ ...LINK, linkHosts: [] })

/** The link to page 2, of so many bytes. */
function linkOf(bytes: number): string {
  return `/list?a[]=1&a[]=2&page=2&q=${'é'.repeat(4000)}`.padEnd(bytes - 4000, 'x')
}

function readText(text: string): unknown {
  return readEnvelope(splitBody(Buffer.from(text), 32_000_000))
}

function readMessage(message: string): unknown {
  const body = Buffer.from(JSON.stringify({ message })).subarray(0, 100_000)
  const announced = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }
  return errorOfStatus({ status: 500, headers: {}, body }, announced, createJob(), LINK.baseUrl)
}

function readHeaders(text: string): unknown {
  const names = [
    'x-ratelimit-limit',
    'x-ratelimit-reset',
    'ratelimit',
    'ratelimit-policy',
    'retry-after',
    'date',
  ]
  return names.map((name) => readRateHeaders({ [name]: text, ratelimit: `"a";r=1${text}` }, 0))
}

/** The most time that one of the texts takes, errors of reading included. Milliseconds. */
function longest(read: (text: string) => unknown, texts: readonly string[]): number {
  return texts.reduce((most, text) => {
    const before = process.threadCpuUsage()
    try {
      read(text)
    } catch (error) {
      // A stack overflow is no result.
      expect(error).not.toBeInstanceOf(RangeError)
    }
    const { user, system } = process.threadCpuUsage(before)
    return Math.max(most, (user + system) / 1000)
  }, 0)
}

describe('a hostile text', () => {
  it.each<[string, (text: string) => unknown]>([
    ['an answer', readText],
    ['an answer that may have broken off', breaksOff],
    ['JSON', parseExact],
    ['a number', canonicalNumber],
    ['an error body', readMessage],
    ['an item that is printed', printableJson],
  ])(
    'is read in linear time: %s',
    (_what, read) => {
      expect(longest(read, [...textsOf(LENGTH), '<title'.repeat(LENGTH / 6)])).toBeLessThan(LONGEST_MS)
    },
    300_000,
  )

  it('is read in linear time: headers', () => {
    const lines = PIECES.filter((piece) => !piece.includes('\n'))

    expect(longest(readHeaders, textsOf(MOST_OF_HEADERS, lines))).toBeLessThan(LONGEST_MS)
  })

  it.each([
    ['40,000 parameters', `/list?${'a[]=1&'.repeat(40_000)}page=2`],
    ['10 megabytes', `/list?q=${'x'.repeat(10_000_000)}&page=2`],
  ])('is no link: %s', (_what, link) => {
    expect(readLink(link, 1)).toEqual({
      refused: expect.stringMatching(/^links\.next is [\d,]+ bytes long, and more than 8,192 are not read$/),
    })
    expect(longest((text) => readLink(text, 1), [link])).toBeLessThan(LONGEST_MS)
  })

  it('may be a link of as many bytes as are allowed, and no more', () => {
    expect(Buffer.byteLength(linkOf(8192))).toBe(8192)
    expect(readLink(linkOf(8192), 1)).toEqual({ page: 2 })
    expect(readLink(linkOf(8193), 1)).toHaveProperty('refused')
  })

  it('costs nothing where it is another link', () => {
    const long = `/list?page=${'1'.repeat(3_000_000)}`
    const body = {
      data: [{ id: 1 }],
      links: { first: long, last: long, prev: long, next: '/list?a[]=1&a[]=2&page=2' },
      meta: { current_page: 1, last_page: 2, total: 2, path: long, links: [{ url: long }] },
    }

    expect(readText(JSON.stringify(body))).toMatchObject({ paging: { next: body.links.next } })
  })
})

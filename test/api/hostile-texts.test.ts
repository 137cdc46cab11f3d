import { expect, it } from 'vitest'
import { readPage } from '../../src/api/page.ts'
import { readRateHeaders } from '../../src/api/rate/headers.ts'
import { errorOfStatus } from '../../src/api/response-errors.ts'
import { canonicalNumber } from '../../src/json/value.ts'
import { printableJson } from '../../src/text.ts'
import { jobOf } from '../helpers/jobs.ts'

// Texts that a server makes to keep the process busy, when no time-out and no signal is noticed: the time to read them must
// be linear in their length.

/** Processor time, which other processes do not lengthen. Reading the text once takes a hundredth of it. */
const LONGEST_MS = 1000

const LENGTH = 120_000

/** The most that Node accepts of all headers together. */
const MOST_OF_HEADERS = 16_000

const PIECES = [
  Array.from(' 0-.e/\\@:?#[{",;<'),
  ['//', '\\"', '""', '[1', ', ', '1.10,', 'a=1;', '\u202e', '\\u0000', '"a":', '"data":'],
].flat()

const textsOf = (length: number) => {
  const texts = PIECES.map((piece) => piece.repeat(length / piece.length))
  return texts.flatMap((text) => [text, `{"data":[${text}]}`])
}

function readText(text: string): unknown {
  return readPage({ body: Buffer.from(text), headers: {} }, 1, 'check')
}

function readLink(next: string): unknown {
  return readText(JSON.stringify({ data: [], links: { next } }))
}

function readMessage(message: string): unknown {
  const body = Buffer.from(JSON.stringify({ message })).subarray(0, 100_000)
  return errorOfStatus({ status: 500, headers: {}, body }, jobOf(), 'https://admin.example.com')
}

function readHeaders(text: string): unknown {
  const names = ['x-ratelimit-limit', 'x-ratelimit-reset', 'retry-after', 'date']
  return names.map((name) => readRateHeaders({ [name]: text }, 0))
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

const ANSWERS = [...textsOf(LENGTH), '<title'.repeat(LENGTH / 6)]
const LINKS = ['page=2&', '?', '&', '%', '%41', 'é', '/../'].map((piece) => `/?${piece.repeat(LENGTH)}`)

it.each<[string, (text: string) => unknown, readonly string[]]>([
  ['an answer', readText, ANSWERS],
  ['a number', canonicalNumber, ANSWERS],
  ['an error body', readMessage, ANSWERS],
  ['an item that is printed', printableJson, ANSWERS],
  ['headers', readHeaders, textsOf(MOST_OF_HEADERS)],
  ['a link', readLink, LINKS],
])(
  'a hostile text is read in linear time: %s',
  (_what, read, texts) => {
    expect(longest(read, texts)).toBeLessThan(LONGEST_MS)
  },
  300_000,
)

import { splitBody } from '../../../src/api/body.ts'
import { type Envelope, readEnvelope } from '../../../src/api/page.ts'
import { EnvelopeError } from '../../../src/api/response-errors.ts'

const MOST_BYTES = 32 * 1024 * 1024

export const LIST = 'https://admin.example.com/api/v1/admin/orders'

export function read(text: string): Envelope {
  return readEnvelope(splitBody(Buffer.from(text), MOST_BYTES))
}

export function errorOf(body: string | Uint8Array): EnvelopeError {
  try {
    readEnvelope(splitBody(Buffer.from(body), MOST_BYTES))
  } catch (error) {
    if (error instanceof EnvelopeError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

export interface Fields {
  links?: object
  meta?: object | undefined
  [name: string]: unknown
}

/** The paginated envelope as a server writes it, with some fields changed; undefined leaves one out. */
export function paged({ links = {}, meta = {}, ...fields }: Fields = {}): string {
  return JSON.stringify({
    data: [{ id: 1 }, { id: 2 }],
    links: { first: `${LIST}?page=1`, last: `${LIST}?page=2`, prev: null, next: `${LIST}?page=2`, ...links },
    meta: {
      current_page: 1,
      from: 1,
      last_page: 2,
      links: [],
      path: LIST,
      per_page: 25,
      to: 25,
      total: 27,
      ...meta,
    },
    success: true,
    message: 'OK',
    ...fields,
  })
}

export function textsOf(envelope: Envelope): string[] {
  return envelope.items.map(({ text }) => text)
}

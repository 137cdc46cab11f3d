import { STATUS_CODES } from 'node:http'
import { phpJson } from './php-json.ts'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

/** A list: JSON whatever the request accepts. */
export function jsonAnswer(status: number, value: unknown): Answer {
  return { status, headers: { 'Content-Type': 'application/json' }, body: phpJson(value) }
}

/** An error: JSON when that is what the request accepts first, else a page for people, as Laravel does it. */
export function errorAnswer(
  accept: string | undefined,
  status: number,
  message: string,
  more: object = {},
): Answer {
  const [first = ''] = (accept ?? '').split(',')
  if (/[/+]json/.test(first)) return jsonAnswer(status, { message, ...more })
  const title = `${status} | ${STATUS_CODES[status] ?? 'Error'}`
  const body = `<!DOCTYPE html>\n<html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`
  return { status, headers: { 'Content-Type': 'text/html; charset=UTF-8' }, body }
}

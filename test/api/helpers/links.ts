import { createLinkReader, type LinkRules, type LinkVerdict } from '../../../src/api/links.ts'

export const BASE = 'https://admin.example.com'
export const PATH = '/api/v1/admin/orders'
export const LIST = `${BASE}${PATH}`

export type Setting = Partial<LinkRules> & { currentPage?: number }

export function read(link: string, { currentPage = 1, ...changed }: Setting = {}): LinkVerdict {
  const rules = { baseUrl: BASE, path: PATH, filters: {}, linkHosts: [], ...changed }
  return createLinkReader(rules)(link, currentPage)
}

export function refusalOf(link: string, changed: Setting = {}): string {
  const verdict = read(link, changed)
  return 'refused' in verdict ? verdict.refused : `accepted page ${verdict.page}`
}

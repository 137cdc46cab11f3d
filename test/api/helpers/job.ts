import type { Filters, Job } from '../../../src/sync/types.ts'
import { jobOf } from '../../helpers/jobs.ts'

export const BASE_URL = 'https://admin.example.com'
export const ORDERS = '/api/v1/admin/orders'

export function createJob({ name = 'acme', filters = {} }: { name?: string; filters?: Filters } = {}): Job {
  return jobOf({ filters }, { id: `7f3c0f1e-52c7-4a86-9d0b-${name.padEnd(12, '0')}`, name })
}

function link(page: number): string {
  return `${BASE_URL}${ORDERS}?page=${page}`
}

/** A page of orders in the paginated envelope, as text. */
export function pageText(page: number, lastPage = page, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({
    data: [{ id: page }],
    links: {
      first: link(1),
      last: link(lastPage),
      prev: null,
      next: page < lastPage ? link(page + 1) : null,
    },
    meta: {
      current_page: page,
      last_page: lastPage,
      per_page: 25,
      total: lastPage,
      from: page,
      to: page,
      path: '',
      links: [],
    },
    success: true,
    message: 'OK',
    ...fields,
  })
}

import { onTestFinished } from 'vitest'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts'

export const ORDERS = '/api/v1/admin/orders'
export const ESTABLISHMENTS = '/api/v1/admin/establishments'
export const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

export const OPTIONS: SandboxOptions = {
  port: 0,
  orders: 60,
  establishments: 3,
  organizations: 2,
  requestsPerMinute: 0,
  seed: 7,
  live: false,
  speed: 1,
  order: 'last',
  now: () => 1_000_000,
}

export interface Body {
  data: { id: number; state: string; created_at: string }[]
  links: { first: string; next: string | null }
  meta: { total: number }
  message: string
}

export type Headers = Record<string, string>

/** Starts a sandbox that is closed after the test. */
export async function start(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ ...OPTIONS, ...options })
  onTestFinished(() => sandbox.close())
  return sandbox
}

/** The headers of a user, for the organization with the same number unless another is given. */
export function headersOf({ organizations }: Sandbox, user = 0, organization = user): Headers {
  return {
    accept: 'application/json',
    authorization: `Bearer ${organizations[user]?.token}`,
    'x-service-organization': organizations[organization]?.id ?? '',
  }
}

/** Asks as the first user, unless other headers are given. */
export function get(sandbox: Sandbox, target: string, headers = headersOf(sandbox)): Promise<Response> {
  return fetch(sandbox.url + target, { headers })
}

export async function read(sandbox: Sandbox, target: string): Promise<Body> {
  const body: Body = JSON.parse(await (await get(sandbox, target)).text())
  return body
}

/** Reads a page and all that follow by links.next. */
export async function walk(sandbox: Sandbox, target: string): Promise<Body[]> {
  const pages: Body[] = []
  for (let next: string | null = target; next !== null; ) {
    const page: Body = await read(sandbox, next)
    pages.push(page)
    next = page.links.next?.replace(sandbox.url, '') ?? null
  }
  return pages
}

export function idsOf(pages: Body[]): number[] {
  return pages.flatMap(({ data }) => data.map(({ id }) => id))
}

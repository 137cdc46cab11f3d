import { type Asked, pageOf, type Reply, serve } from '../../helpers/list-server.ts'

/** Lists that change with each request, budgets that are counted, tokens that are refused: what the truth is. */
export interface CrashApi {
  url: string
  /** The items of a list, by organization and collection. */
  listOf(organization: string, collection: string): readonly Item[]
  /** From now on this token is refused, or valid again. */
  revoke(token: string, isRevoked: boolean): void
  /** When requests with this token came. */
  timesOf(token: string): number[]
  /** Of each token, the requests that its announced budget had no room for. */
  refusedByBudget: string[]
  /** The lists stand still from now on, and nothing is limited. */
  rest(): void
  requests(): number
}

interface Item {
  id: number
  version: number
}

const PER_PAGE = 5
const WINDOW_MS = 60_000

/** `most`: requests in a minute with a token of these, which is announced; the others have no limit. */
export async function startCrashApi(limited: readonly string[], most: number): Promise<CrashApi> {
  const lists = new Map<string, Item[]>()
  const revoked = new Set<string>()
  const times = new Map<string, number[]>()
  const windows = new Map<string, { endsAt: number; count: number }>()
  const refusedByBudget: string[] = []
  let isAtRest = false
  let count = 0

  function listFor(organization: string, collection: string): Item[] {
    const name = `${organization} ${collection}`
    const list = lists.get(name) ?? newList()
    lists.set(name, list)
    return list
  }

  /** What happens to a list between two requests: one comes, one changes, now and then one goes. */
  function change(list: Item[]): void {
    count++
    if (count % 3 === 0) list.push({ id: Math.max(...list.map(({ id }) => id)) + 1, version: 0 })
    const one = list[(count * 7) % list.length]
    if (one) one.version++
    if (count % 5 === 0 && list.length > 20) list.splice((count * 3) % list.length, 1)
  }

  function admit(token: string, now: number): Record<string, string> | null {
    if (!limited.includes(token)) return {}
    const known = windows.get(token)
    const window = known && now < known.endsAt ? known : { endsAt: now + WINDOW_MS, count: 0 }
    windows.set(token, window)
    const left = String(most - ++window.count)
    if (window.count <= most) return { 'x-ratelimit-limit': String(most), 'x-ratelimit-remaining': left }
    refusedByBudget.push(token)
    return null
  }

  function reply(asked: Asked): Reply {
    const { token, organization, collection } = asked
    times.set(token, [...(times.get(token) ?? []), Date.now()])
    if (revoked.has(token)) return { status: 401, body: { message: 'Unauthenticated.' } }
    const headers = isAtRest ? {} : admit(token, Date.now())
    if (!headers)
      return { status: 429, headers: { 'retry-after': '60' }, body: { message: 'Too Many Attempts.' } }
    const list = listFor(organization, collection)
    if (!isAtRest) change(list)
    return { ...pageOf(list, asked, PER_PAGE), headers }
  }

  const { url } = await serve(reply)
  return {
    url,
    listOf: listFor,
    revoke(token, isRevoked) {
      if (isRevoked) revoked.add(token)
      else revoked.delete(token)
    },
    timesOf: (token) => times.get(token) ?? [],
    refusedByBudget,
    rest() {
      isAtRest = true
    },
    requests: () => [...times.values()].reduce((sum, { length }) => sum + length, 0),
  }
}

function newList(): Item[] {
  return Array.from({ length: 23 }, (_, index) => ({ id: index + 1, version: 0 }))
}

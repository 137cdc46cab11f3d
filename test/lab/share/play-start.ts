import type { HttpGet } from '../../../src/api/http.ts'
import { createVirtualClock, type VirtualClock } from '../../simulation/clock.ts'
import { runCommand } from '../../simulation/commands.ts'
import { createGround } from '../../simulation/ground.ts'
import type { Happening } from '../../simulation/happening.ts'
import { createList, pageAt, pageBody } from '../../simulation/list.ts'
import { createProcess } from '../../simulation/process.ts'
import { createRandom } from '../../simulation/random.ts'
import { createRuntime } from '../../simulation/runtime.ts'
import { createThrottle } from '../../simulation/server.ts'
import { BASE_URL, configOf } from '../../simulation/setting.ts'
import { type Reader, whoAsks } from '../../simulation/traffic.ts'

/** `start` on the orders of organizations that share one token. */
export interface ShareSetting {
  organizations: number
  /** Of each list. */
  pages: number
  hours: number
  /** Hours between two full walks. */
  walkEvery: number
  /** What the server allows. */
  requestsPerMinute: number
  /** Whether it says so; otherwise only a 429 does. */
  isAnnounced: boolean
  /** How often it answers 429 although requests are left. */
  refusals: number
}

/** Times in milliseconds since `start` began. */
export interface PlayedStart {
  requests: { at: number; reader: Reader; status: number }[]
  refreshes: { at: number; organization: string }[]
  walks: { at: number; organization: string; succeeded: boolean }[]
}

const HOUR = 3_600_000
const BEGIN = Date.parse('2026-11-20T08:00:00Z')
const PER_PAGE = 25
const ANSWER_MS = 200
const TOKEN = 'token-of-all-9d0b3c4a'

/** Plays it in simulated time, on a real mirror. */
export async function playStart(setting: ShareSetting): Promise<PlayedStart> {
  const clock = createVirtualClock(BEGIN)
  const played: PlayedStart = { requests: [], refreshes: [], walks: [] }
  const ground = createGround()
  const { config: mirror } = await ground.lay(1)
  const process = createProcess({
    name: 'start-1',
    byHand: false,
    acceptsRemovals: false,
    fate: null,
    onKill: () => {},
  })
  const runtime = createRuntime(process, 1, { clock, now: clock.now }, createRandom(1))
  const machine = {
    process,
    mistake: {},
    runtime,
    config: { ...configOf(settingsOf(setting)), ...mirror },
    exchange: createApi(setting, clock, played),
    tell: (happening: Happening) => note(played, happening, clock.now() - BEGIN),
  }
  const rounds = Math.ceil(setting.hours / setting.walkEvery) + 1
  const command = { kind: 'start', rounds, pauseMs: setting.walkEvery * HOUR } as const
  clock.after(setting.hours * HOUR, () => process.signal())
  let isOver = false
  const ended = process
    .run(() => runCommand(machine, command))
    .finally(() => {
      isOver = true
    })
  for (;;) {
    await clock.settle()
    if (isOver) break
    clock.tick()
  }
  ground.remove()
  await ended
  return played
}

function settingsOf({ organizations }: ShareSetting): object {
  return {
    api: { baseUrl: BASE_URL },
    refresh: { every: '5m', share: 10 },
    collections: { establishments: false },
    organizations: Array.from({ length: organizations }, (_, index) => ({
      id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      name: `o${index}`,
      token: TOKEN,
    })),
  }
}

/** Lists that stand still, behind a throttle. */
function createApi(
  { pages, requestsPerMinute, isAnnounced, refusals }: ShareSetting,
  clock: VirtualClock,
  { requests }: PlayedStart,
): HttpGet {
  const list = createList(PER_PAGE, pages * PER_PAGE)
  const throttle = createThrottle({
    limits: [{ most: requestsPerMinute, windowSeconds: 60 }],
    headers: isAnnounced,
  })
  const random = createRandom(2)
  return (url, _headers, signal) =>
    new Promise((resolve, reject) => {
      const { admitted, headers } = throttle.admit(TOKEN, clock.now())
      const status = admitted && !random.chance(refusals) ? 200 : 429
      requests.push({ at: clock.now() - BEGIN, reader: whoAsks(), status })
      const page = pageAt(list, Number(url.searchParams.get('page') ?? '1'), {})
      const text =
        status === 200 ? pageBody(page, `${BASE_URL}${url.pathname}`, {}) : '{"message":"Too Many Attempts."}'
      const stop = clock.after(ANSWER_MS, () => resolve({ status, headers, body: Buffer.from(text) }))
      signal.addEventListener('abort', () => {
        stop()
        reject(signal.reason)
      })
    })
}

function note({ refreshes, walks }: PlayedStart, happening: Happening, at: number): void {
  if (happening.kind === 'refresh finished') {
    refreshes.push({ at, organization: happening.job.organization.id })
  }
  if (happening.kind === 'job ended' && happening.result.walk) {
    const { job, error } = happening.result
    walks.push({ at, organization: job.organization.id, succeeded: error === null })
  }
}

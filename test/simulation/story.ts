import { type Happening, listenWith, type Outcome, type Request } from './happening.ts'
import type { SimulatedProcess } from './process.ts'
import type { Tenant } from './setting.ts'

const LAST = 40

/** How often what happened, so that nobody takes quiet histories for sound ones. */
export type Counts = Record<string, number>

/** What happened, counted, and put into words when somebody wants to read it, with the names of the tenants for their ids. */
export function createStory(now: () => number, tenants: readonly Tenant[]) {
  const startAt = now()
  const moments: { at: number; happening: Happening }[] = []
  const counts: Counts = {}
  /** Jobs that somebody has not let go of. */
  const taken = new Set<string>()

  function note(what: string): void {
    counts[what] = (counts[what] ?? 0) + 1
  }

  const noteMore = listenWith({
    claimed({ job }) {
      if (taken.has(job)) note('taken over')
      taken.add(job)
    },
    releasing: ({ job }) => taken.delete(job),
    'run began': ({ resumed }) => resumed && note('walk gone on with'),
    'refresh finished': ({ status }) => note(`refresh ${status}`),
    delivered: ({ outcome }) => note(outcome.kind === 'answer' ? `answer ${outcome.status}` : outcome.kind),
  })

  return {
    tell(happening: Happening): void {
      if (happening.kind !== 'committed') moments.push({ at: now(), happening })
      note(happening.kind)
      noteMore(happening)
    },
    /** Counts something that is no happening, too. */
    note,
    counts,
    count: (...what: string[]) => what.reduce((sum, one) => sum + (counts[one] ?? 0), 0),
    /** The last of it, and the last of what concerned a job; or all of it. */
    text(job: string | undefined, last = LAST): string {
      const about = moments.filter(({ happening }) => job === jobOf(happening))
      const shown = new Set([...moments.slice(-last), ...about.slice(-last)])
      return moments
        .filter((moment) => shown.has(moment))
        .map(({ at, happening }) => {
          const seconds = ((at - startAt) / 1000).toFixed(3).padStart(12)
          return `${seconds} s  ${tenants.reduce((text, { id, name }) => text.replaceAll(id, name), inWords(happening))}`
        })
        .join('\n')
    },
  }
}

/** Organization and collection, where it is about one. */
export function jobOf(happening: Happening): string | null {
  if ('request' in happening) return happening.request.job
  return 'job' in happening ? happening.job : null
}

/** Its kind, who did it, and each further part by its name. */
function inWords({ kind, ...told }: Happening): string {
  const parts = Object.entries(told).map(([name, value]) => {
    if (name === 'process') return (value as SimulatedProcess).name
    if (name === 'request') return requestInWords(value as Request)
    if (name === 'outcome') return outcomeInWords(value as Outcome)
    if (value instanceof Error) return value.message
    return `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`
  })
  return [kind, ...parts].join(' ')
}

function requestInWords({ process, number, job, page, reader, token }: Request): string {
  return `${number} of ${process.name} for ${job} page ${page}, a ${reader}'s, with ${token}:`
}

function outcomeInWords(outcome: Outcome): string {
  if (outcome.kind !== 'answer') return outcome.kind
  const items = outcome.page?.items.map(({ id, version }) => `${id}v${version}`) ?? []
  const told = Object.entries(outcome.headers).map(([name, value]) => `${name} ${value}`)
  return [outcome.status, ...items, ...told].join(' ')
}

export function addCounts(sum: Counts, more: Counts): Counts {
  const names = new Set([...Object.keys(sum), ...Object.keys(more)])
  return Object.fromEntries([...names].toSorted().map((name) => [name, (sum[name] ?? 0) + (more[name] ?? 0)]))
}

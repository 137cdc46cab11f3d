import { concernOf, type Happening, listenWith } from './happening.ts'
import type { ListItem } from './list.ts'
import type { SimulatedProcess } from './process.ts'
import type { Tenant } from './setting.ts'

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
    text(job?: string, last = 40): string {
      const about = moments.filter(({ happening }) => job !== undefined && job === concernOf(happening).job)
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

/** Its kind, and its parts as JSON. */
function inWords({ kind, ...told }: Happening): string {
  return `${kind} ${JSON.stringify(told, (name, value: unknown) => {
    if (name === 'process') return (value as SimulatedProcess).name
    if (name === 'items') return (value as ListItem[]).map(({ id, version }) => `${id}v${version}`).join(' ')
    // It says what the page says.
    if (name === 'body') return undefined
    return value instanceof Error ? value.message : value
  })}`
}

export function sumOf(all: readonly Counts[]): Counts {
  const names = new Set(all.flatMap((counts) => Object.keys(counts)))
  const sum = (name: string) => all.reduce((count, counts) => count + (counts[name] ?? 0), 0)
  return Object.fromEntries([...names].toSorted().map((name) => [name, sum(name)]))
}

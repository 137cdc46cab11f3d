import type { Happening, Tell } from './happening.ts'
import type { Outcome, Request } from './traffic.ts'

interface Line {
  at: number
  /** Organization and collection, where it is about one. */
  job: string | null
  text: string
}

/** What happened, as people read it. */
export interface Story {
  tell: Tell
  /** All of it. */
  whole(): string
  /** The last of it, and the last of what concerned each of these jobs. */
  shortened(jobs: readonly string[]): string
}

export interface StoryOptions {
  now: () => number
  startAt: number
  /** Writes short names for organizations' ids. */
  shorten: (text: string) => string
}

const LAST = 40

export function createStory({ now, startAt, shorten }: StoryOptions): Story {
  const lines: Line[] = []

  function write({ at, text }: Line): string {
    return `${((at - startAt) / 1000).toFixed(3).padStart(12)} s  ${shorten(text)}`
  }

  return {
    tell(happening) {
      if (happening.kind !== 'committed') lines.push({ at: now(), ...describe(happening) })
    },
    whole: () => lines.map(write).join('\n'),
    shortened(jobs) {
      const last = new Set(lines.slice(-LAST))
      const concerned = lines.filter(({ job }) => job !== null && jobs.includes(job)).slice(-LAST)
      for (const line of concerned) last.add(line)
      return lines
        .filter((line) => last.has(line))
        .map(write)
        .join('\n')
    },
  }
}

function describe(happening: Happening): Omit<Line, 'at'> {
  switch (happening.kind) {
    case 'sent':
    case 'served':
    case 'delivered':
    case 'gave up':
      return { job: happening.request.job, text: describeTraffic(happening) }
    case 'claimed':
    case 'busy':
    case 'releasing':
    case 'run began':
    case 'waits':
    case 'job ended':
      return describeWork(happening)
    case 'server':
      return { job: null, text: `the server: ${happening.what}` }
    case 'locked':
      return { job: null, text: `somebody outside locks the mirror for ${happening.ms} ms` }
    case 'token replaced':
      return { job: null, text: `${happening.organization} is configured with ${happening.after}` }
    default:
      return { job: null, text: describeLife(happening) }
  }
}

function describeTraffic(happening: Happening & { request: Request }): string {
  const { number, process, job, page, token } = happening.request
  const what = `request ${number} (${job} page ${page})`
  if (happening.kind === 'sent') return `${process.name} sends ${what} with ${token}`
  if (happening.kind === 'gave up') return `${process.name} gives up ${what}`
  if (happening.kind === 'served') return `the server answers ${what}: ${describeOutcome(happening.outcome)}`
  return `${process.name} gets the answer to ${what}`
}

function describeOutcome(outcome: Outcome): string {
  if (outcome.kind !== 'answer') return outcome.kind
  const { status, headers, page } = outcome
  const told = Object.entries(headers).map(([name, value]) => `${name} ${value}`)
  const items = page?.items.map(({ id, version }) => `${id}v${version}`).join(' ')
  return [status, items ?? '', ...told].join(', ')
}

type Work = Happening & { kind: 'claimed' | 'busy' | 'releasing' | 'run began' | 'waits' | 'job ended' }

function describeWork(happening: Work): Omit<Line, 'at'> {
  const { organization, collection } = happening.kind === 'job ended' ? happening.result.job : happening.job
  const job = `${organization.id} ${collection.name}`
  return { job, text: `${happening.process.name} ${describeStage(happening)} ${job}` }
}

function describeStage(happening: Work): string {
  switch (happening.kind) {
    case 'claimed':
      return 'takes'
    case 'busy':
      return 'finds busy'
    case 'releasing':
      return 'lets go of'
    case 'run began':
      return `begins run ${happening.run}${happening.resumed ? ', going on with a walk,' : ''} of`
    case 'waits':
      return `waits (${happening.reason}) until ${new Date(happening.until).toISOString()} with`
    case 'job ended':
      return `has ended (${happening.result.error?.code ?? 'succeeded'}${happening.result.error ? `: ${happening.result.error.message}` : ''})`
  }
}

type Life = Exclude<Happening, { request: Request } | Work | { kind: 'server' | 'locked' | 'token replaced' }>

function describeLife(happening: Life): string {
  const { name } = happening.process
  switch (happening.kind) {
    case 'started':
      return `${name} starts: ${happening.command}`
    case 'committed':
      return `${name} commits`
    case 'run finished':
      return `${name} ends run ${happening.run}: ${happening.outcome.status} ${happening.outcome.errorCode ?? ''}`
    case 'run cancelled':
      return `${name} takes run ${happening.run} back`
    case 'resumed':
      return `${name} has resumed ${happening.organizations.join(', ')}`
    case 'killed':
      return `${name} is killed at ${happening.where}`
    case 'signalled':
      return `${name} is told to stop`
    case 'ended':
      return `${name} exits ${happening.error instanceof Error ? `(${happening.error.message})` : ''}`
  }
}

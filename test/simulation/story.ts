import type { Happening, HappeningOf, Tell } from './happening.ts'
import { jobName, type Outcome, type Request } from './traffic.ts'

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

interface Moment {
  at: number
  happening: Happening
}

const LAST = 40

/** Things are put into words when somebody wants to read them: of most histories nobody does. */
export function createStory({ now, startAt, shorten }: StoryOptions): Story {
  const moments: Moment[] = []

  function write({ at, happening }: Moment): string {
    const seconds = ((at - startAt) / 1000).toFixed(3).padStart(12)
    return `${seconds} s  ${shorten(inWords(happening))}`
  }

  return {
    tell(happening) {
      if (happening.kind !== 'committed') moments.push({ at: now(), happening })
    },
    whole: () => moments.map(write).join('\n'),
    shortened(jobs) {
      const about = moments.filter(({ happening }) => jobs.includes(jobOf(happening) ?? ''))
      const shown = new Set([...moments.slice(-LAST), ...about.slice(-LAST)])
      const lines = moments.filter((moment) => shown.has(moment)).map(write)
      return lines.join('\n')
    },
  }
}

/** Organization and collection, where it is about one. */
function jobOf(happening: Happening): string | null {
  if ('request' in happening) return happening.request.job
  if (happening.kind === 'list changed') return happening.job
  const job = 'result' in happening ? happening.result.job : 'job' in happening ? happening.job : null
  return job && jobName(job.organization.id, job.collection.name)
}

type Words = { [Kind in Happening['kind']]: (happening: HappeningOf<Kind>) => string }

const WORDS: Words = {
  started: ({ process, command }) => `${process.name} starts: ${command}`,
  sent: ({ request }) =>
    `${request.process.name} sends ${named(request)} ${request.reader === 'walk' ? '' : 'of a refresh '}with ${request.token}`,
  served: ({ request, outcome }) => `the server answers ${named(request)}: ${outcomeInWords(outcome)}`,
  delivered: ({ request }) => `${request.process.name} gets the answer to ${named(request)}`,
  'gave up': ({ request }) => `${request.process.name} gives up ${named(request)}`,
  committed: ({ process }) => `${process.name} commits`,
  claimed: (told) => `${told.process.name} takes ${jobOf(told)}`,
  busy: (told) => `${told.process.name} finds ${jobOf(told)} busy`,
  releasing: (told) => `${told.process.name} lets go of ${jobOf(told)}`,
  'run began': (told) =>
    `${told.process.name} begins run ${told.run} of ${jobOf(told)}, ${told.resumed ? 'going on with' : 'beginning'} walk ${told.walk}`,
  'run finished': ({ process, run, outcome }) =>
    `${process.name} ends run ${run}: ${outcome.status} ${outcome.errorCode ?? ''}`,
  'refresh began': (told) =>
    `${told.process.name} begins refresh ${told.run} of ${jobOf(told)}${told.within === null ? '' : ` within run ${told.within}`}`,
  'refresh finished': ({ process, run, outcome, record }) =>
    `${process.name} ends refresh ${run}: ${outcome.status} ${outcome.errorCode ?? ''} ${record.pages} pages`,
  'run cancelled': ({ process, run }) => `${process.name} takes run ${run} back`,
  waits: (told) =>
    `${told.process.name} waits (${told.reason}) until ${new Date(told.until).toISOString()} with ${jobOf(told)}`,
  'job ended': (told) => {
    const { error } = told.result
    return `${told.process.name} has ended ${jobOf(told)}: ${error ? `${error.code}: ${error.message}` : 'succeeded'}`
  },
  resumed: ({ process, organizations }) => `${process.name} has resumed ${organizations.join(', ')}`,
  'token replaced': ({ organization, after }) => `${organization} is configured with ${after}`,
  locked: ({ ms }) => `somebody outside locks the mirror for ${ms} ms`,
  killed: ({ process, where }) => `${process.name} is killed: ${where}`,
  'cut off': ({ process }) => `${process.name} is cut off from the server`,
  halted: ({ process, ms }) => `${process.name} stands still for ${ms} ms`,
  signalled: ({ process }) => `${process.name} is told to stop`,
  ended: ({ process, error }) => `${process.name} exits ${error instanceof Error ? error.message : ''}`,
  'list changed': ({ job, change }) => `the list of ${job}: ${JSON.stringify(change)}`,
  'filters changed': ({ filters }) => `the filters are ${JSON.stringify(filters)} from now on`,
  'newest changed': ({ newest }) => `newest is ${newest} from now on`,
  'clock set': ({ ms }) => `the clock is set back by ${ms} ms`,
  'own clock set': ({ process, ms }) => `the clock of ${process.name} is set by ${ms} ms`,
  server: ({ what }) => `the server: ${what}`,
}

function inWords(happening: Happening): string {
  const words = WORDS[happening.kind] as (happening: Happening) => string
  return words(happening).trimEnd()
}

function named({ number, job, page }: Request): string {
  return `request ${number} (${job} page ${page})`
}

function outcomeInWords(outcome: Outcome): string {
  if (outcome.kind !== 'answer') return outcome.kind
  const items = outcome.page?.items.map(({ id, version }) => `${id}v${version}`).join(' ')
  const told = Object.entries(outcome.headers).map(([name, value]) => `${name} ${value}`)
  return [String(outcome.status), ...(items ? [items] : []), ...told].join(', ')
}

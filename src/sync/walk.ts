import { JobError } from '../errors.ts'
import type { Account, WalkRules } from './coverage/account.ts'
import { advance } from './coverage/advance.ts'
import { expecting, nextPass } from './coverage/beginning.ts'
import { expectedMissed } from './coverage/expected-missed.ts'
import { resumeReading } from './coverage/overlap.ts'
import { totalOff } from './coverage/totals.ts'
import { judgePass } from './coverage/verdict.ts'
import type { Mirror, WalkKeeper } from './mirror.ts'
import { createOnTheirWay } from './on-their-way.ts'
import { cameAtOnce, decideRemovals, type HeldRemovals, type RemovalRules, whyUntrusted } from './removals.ts'
import type {
  Checkpoint,
  Job,
  Page,
  PageObserver,
  PageSource,
  Reading,
  Run,
  SavedPage,
  Sighting,
  Walk,
  WalkOutcome,
} from './types.ts'

export interface WalkObserver extends PageObserver {
  onPage(page: Page, saved: SavedPage, rowsInWalk: number): void
  onPassAgain(why: string, pass: number): void
}

export interface ReadOptions {
  job: Job
  walk: Walk
  /** Walks that this one takes the place of with its first page. */
  replace: readonly number[]
  run: Run
  source: PageSource
  mirror: WalkKeeper
  maxPasses: number
  observer: WalkObserver
  now: () => number
  turn: () => Promise<void>
  signal: AbortSignal
}

export interface WalkOptions extends ReadOptions {
  mirror: Mirror
  removals: RemovalRules
}

export interface WalkEnd extends WalkOutcome {
  /** Rows that left the list, or seem to, and wait for somebody's word. */
  held: HeldRemovals | null
}

/** Reads a list, removes what has left it, and completes the walk. Returns how sure it is. Throws as `readList` does. */
export async function walkList(options: WalkOptions): Promise<WalkEnd> {
  return endWalk(options, await readList(options))
}

/**
 * Reads a list from the walk's checkpoint to its end, as often as its coverage asks for. Throws on the first page that
 * cannot be had; the checkpoint of the page before it stands.
 */
export async function readList(options: ReadOptions): Promise<Reading> {
  const { job, walk, mirror, maxPasses, observer } = options
  const rules = { kind: walk.kind, firstPage: walk.firstPage, total: job.collection.total }
  let checkpoint = beginning(rules, walk)
  let distinct = walk.rowsSeen
  for (;;) {
    const end = await walkPass(options, rules, checkpoint, distinct)
    distinct = end.distinct
    const verdict = judgePass(end.checkpoint, distinct, { ...rules, maxPasses })
    if (verdict.kind === 'complete') {
      const { pass: passes, account } = end.checkpoint
      const key = `collections.${job.collection.name}.total`
      const isWrong = totalOff(verdict.coverage, account) === 'again'
      const why = isWrong ? `${verdict.why}: set ${key}: ignore` : (verdict.why ?? null)
      return { coverage: verdict.coverage, why, passes, account }
    }
    if (verdict.kind === 'incomplete') {
      await mirror.abandonWalk(walk.id)
      throw new JobError(
        'INCOMPLETE',
        `${job.organization.name} ${job.collection.name}: the list ends before its own total, in every pass: ${verdict.why}. ` +
          `What came is in the mirror and nothing was removed; ${afterIncomplete(end.checkpoint.account)}`,
      )
    }
    checkpoint = nextPass(end.checkpoint)
    await mirror.saveCheckpoint(walk, checkpoint)
    observer.onPassAgain(verdict.why, checkpoint.pass)
  }
}

/**
 * From the checkpoint to the end of the list. The pages are asked for one after another, since only an answer tells
 * whether there is a next page; while one is written the next may be on its way. Each is committed with its checkpoint
 * before the next one is looked at: a process that is killed at any point has written either all of a page or nothing of
 * it.
 */
async function walkPass(options: ReadOptions, rules: WalkRules, from: Checkpoint, distinctBefore: number) {
  const { job, walk, run, mirror, observer } = options
  const pages = createOnTheirWay(options)
  let checkpoint = from
  let distinct = distinctBefore
  let replaces = options.replace
  try {
    while (checkpoint.ask !== null) {
      const page = await pages.fetch(checkpoint.ask)
      const sighting = await mirror.sight(job, walk, checkpoint, page)
      checkpoint = advanceOn(job, rules, checkpoint, page, sighting)
      const next = checkpoint
      const saved = await pages.writeMeanwhile(next.ask, () =>
        mirror.savePage(job, walk, run, page, sighting, next),
      )
      for (const id of replaces) await mirror.abandonWalk(id)
      replaces = []
      distinct += sighting.newToWalk
      observer.onPage(page, saved, distinct)
    }
  } finally {
    await pages.giveUp()
  }
  return { checkpoint, distinct }
}

/**
 * The walk stays open until all that it means for the rows is done: whoever goes on with it has nothing to ask, and
 * judges it once more.
 */
async function endWalk(
  { job, walk, run, mirror, removals }: WalkOptions,
  reading: Reading,
): Promise<WalkEnd> {
  const { coverage, account } = reading
  const isFull = walk.kind === 'full'
  const untrusted = isFull ? whyUntrusted(reading, await mirror.newRejects(walk)) : null
  if (isFull && untrusted === null) {
    const missing = await mirror.findMissing(job, walk, cameAtOnce(reading))
    const listed = Math.min(missing.listed, account.passDistinct)
    const { hold, remove } = decideRemovals({ ...missing, listed }, removals)
    if (hold) await mirror.holdMissing(job, hold === 'earlier' ? null : hold)
    if (remove) await mirror.removeMissing(job, run)
  }
  const outcome = {
    coverage,
    untrusted,
    expectedMissed: isFull ? expectedMissed(coverage, account) : null,
    totalOff: totalOff(coverage, account),
  }
  const held = await mirror.completeWalk(job, walk, outcome)
  return { ...outcome, held }
}

/** What to do about a list that ends too early. Not to look away, where its own pages say that there are more. */
function afterIncomplete({ passShort }: Pick<Account, 'passShort'>): string {
  return passShort
    ? 'its last page names no next one and counts more of them, so something is wrong with the API'
    : 'if the API counts items that it does not list, set total: ignore'
}

/** `advance`, whose complaint gets the name of the list. */
function advanceOn(job: Job, rules: WalkRules, from: Checkpoint, page: Page, sighting: Sighting): Checkpoint {
  try {
    return advance(rules, from, page, sighting)
  } catch (error) {
    if (!(error instanceof JobError)) throw error
    throw new JobError(error.code, `${job.organization.name} ${job.collection.name}: ${error.message}`)
  }
}

function beginning(rules: WalkRules, walk: Walk): Checkpoint {
  return walk.resumed ? resumeReading(rules, walk.checkpoint) : expecting(walk.checkpoint, walk)
}

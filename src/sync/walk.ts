import { JobError } from '../errors.ts'
import type { Account, WalkRules } from './coverage/account.ts'
import { advance } from './coverage/advance.ts'
import { expecting, nextPass } from './coverage/beginning.ts'
import { expectedMissed } from './coverage/expected-missed.ts'
import { resumeReading } from './coverage/overlap.ts'
import { totalOff } from './coverage/totals.ts'
import { judgePass } from './coverage/verdict.ts'
import { identifyItems } from './items.ts'
import { ledgerEntry, matchPage } from './match-page.ts'
import type { Mirror, WalkKeeper } from './mirror.ts'
import { createReadAhead } from './read-ahead.ts'
import { cameAtOnce, decideRemovals, type HeldRemovals, type RemovalRules, whyUntrusted } from './removals.ts'
import type { SeenItems } from './seen-items.ts'
import type {
  Checkpoint,
  Job,
  Page,
  PageMatch,
  PageObserver,
  PageSource,
  Reading,
  Run,
  SavedPage,
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
  /** What the walk has seen so far; each page is added when it is written. */
  seen: SeenItems
  /** Walks that this one takes the place of with its first page. */
  replace: readonly number[]
  run: Run
  source: PageSource
  mirror: WalkKeeper
  maxPasses: number
  observer: WalkObserver
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
  const { job, walk, seen, mirror, maxPasses, observer } = options
  const rules = { kind: walk.kind, firstPage: walk.firstPage, total: job.collection.total }
  let checkpoint = beginning(rules, walk)
  for (;;) {
    const end = await walkPass(options, rules, checkpoint)
    const verdict = judgePass(end, seen.items, { ...rules, maxPasses })
    if (verdict.kind === 'complete') {
      const { pass: passes, account } = end
      const { coverage, why = null } = verdict
      const isWrong = totalOff(coverage, account) === 'again'
      const advice = `: set ${totalKey(job.collection)}: ignore`
      return { coverage, why: isWrong ? `${why}${advice}` : why, passes, account }
    }
    if (verdict.kind === 'incomplete') {
      await mirror.abandonWalk(walk.id)
      throw new JobError(
        'INCOMPLETE',
        `${job.organization.name} ${job.collection.name}: the list ends before its own total, in every pass: ${verdict.why}. ` +
          `What came is in the mirror and nothing was removed; ${afterIncomplete(job, end.account)}`,
      )
    }
    checkpoint = nextPass(end)
    await mirror.saveCheckpoint(walk, checkpoint)
    observer.onPassAgain(verdict.why, checkpoint.pass)
  }
}

/**
 * Reads from the checkpoint to the end of the list. Pages are asked for one after another, since only an answer tells
 * which page is next. Each is committed with its checkpoint before
 * the next one is looked at: a process that is killed at any point has written either all of a page or nothing of it.
 */
async function walkPass(options: ReadOptions, rules: WalkRules, from: Checkpoint): Promise<Checkpoint> {
  const { job, walk, seen, run, mirror, observer } = options
  const pages = createReadAhead(options)
  let checkpoint = from
  let replaces = options.replace
  try {
    while (checkpoint.ask !== null) {
      const page = await pages.take(checkpoint.ask)
      const items = identifyItems(job, page)
      const match = matchPage(items, checkpoint, seen)
      const { newToWalk } = match
      const entry = ledgerEntry(page, match)
      const next = advanceOn(job, rules, checkpoint, page, match)
      if (next.ask) await pages.request(next.ask)
      const saved = await mirror.savePage({ job, walk, run, page, items, newToWalk, entry, next })
      seen.add(entry)
      checkpoint = next
      for (const id of replaces) await mirror.abandonWalk(id)
      replaces = []
      observer.onPage(page, saved, seen.items)
    }
  } finally {
    await pages.close()
  }
  return checkpoint
}

/**
 * The walk stays open until all that it means for the rows is done: whoever goes on with it has nothing to ask, and
 * judges it once more.
 */
async function endWalk(
  { job, walk, seen, run, mirror, removals }: WalkOptions,
  reading: Reading,
): Promise<WalkEnd> {
  const { coverage, account } = reading
  const isFull = walk.kind === 'full'
  const untrusted = isFull ? whyUntrusted(reading, await mirror.newRejects(walk)) : null
  if (isFull && untrusted === null) {
    const missing = await mirror.findMissing(job, walk, seen, cameAtOnce(reading))
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

function totalKey({ name }: Job['collection']): string {
  return `collections.${name}.total`
}

/** What to do about a list that ends too early. Not to look away, where its own pages say that there are more. */
function afterIncomplete({ collection }: Job, { passShort }: Pick<Account, 'passShort'>): string {
  return passShort
    ? 'its last page names no next one and counts more of them, so something is wrong with the API'
    : `if the API counts items that it does not list, set ${totalKey(collection)}: ignore`
}

/** `advance`, whose complaint gets the name of the list. */
function advanceOn(job: Job, rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  try {
    return advance(rules, from, page, match)
  } catch (error) {
    if (!(error instanceof JobError)) throw error
    throw new JobError(error.code, `${job.organization.name} ${job.collection.name}: ${error.message}`)
  }
}

function beginning(rules: WalkRules, walk: Walk): Checkpoint {
  return walk.resumed ? resumeReading(rules, walk.checkpoint) : expecting(walk.checkpoint, walk)
}

import { parseExact } from '../json/exact.ts'
import { differingPaths, sameJson } from '../json/value.ts'
import type { ListedItem, StoredItem } from './items.ts'
import type { Coverage } from './types.ts'

/** A difference between a list and the mirror. */
export interface Difference {
  /** `missing`: only in the list; `extra`: only in the mirror; `different`: another value. */
  kind: 'missing' | 'extra' | 'different'
  /** A JSON list if the key has several fields; null for an item without a usable key. */
  key: string | null
  /** The page that listed it; null: none did. */
  page: number | null
  /** The first dotted paths that differ. */
  paths: readonly string[]
  hasMorePaths: boolean
  /** Why the item has no usable key. */
  reject: string | null
}

/** The result of a verification. */
export interface Differences {
  /** Distinct items of the list. */
  items: number
  counts: Record<Difference['kind'], number>
  /** There were too many candidates, so the counts say "at least". */
  isCut: boolean
  /** The first of each kind. */
  listed: Difference[]
  /** Items that changed, came or left during the reading: these are no differences. */
  moved: number
  coverage: Coverage | null
  /** False if the reading was not trusted, so that extra rows are unknown. */
  isExtraKnown: boolean
  /** The mirror never had anything of this list; `items` is then the list's own total. */
  isNeverSynced: boolean
}

/** How many differences of each kind are listed, and how many paths of each; all are counted. */
const LISTED = 20
const MOST_PATHS = 10

/** Candidates of each kind kept in memory, with their texts. */
const MOST_CANDIDATES = 50_000

/** `moved`: the item changed, was added or left during the reading. */
type Judgement = 'suspected' | 'certain' | 'moved'

interface Candidate extends Omit<Difference, 'key' | 'hasMorePaths'> {
  id: string
  /** The item as it was sent; null for a row that was not listed. */
  text: string | null
  judgement: Judgement
}

export type Candidates = ReturnType<typeof createCandidates>

/**
 * Items that seem to differ, until a second look decides.
 * @param ignore Dotted paths whose values are not compared.
 * @param most Candidates of each kind that are kept.
 */
export function createCandidates(ignore: ReadonlySet<string>, most = MOST_CANDIDATES) {
  const known = new Map<string, Candidate>()
  const counts = { missing: 0, extra: 0, different: 0 }
  /** Those with candidates that wait for a second look. */
  const pages = new Set<number>()
  let isCut = false

  function add(candidate: Candidate): void {
    if (known.has(candidate.id)) return
    // Each kind has its own limit: a field that changed in all rows must not hide a missing one.
    if (counts[candidate.kind] >= most) {
      isCut = true
      return
    }
    counts[candidate.kind]++
    known.set(candidate.id, candidate)
    if (candidate.judgement === 'suspected' && candidate.page !== null) pages.add(candidate.page)
  }

  function isSameValue(text: string | null, { item }: ListedItem): boolean {
    if (text === null || text === item.text) return text !== null
    return sameJson(parseExact(text), item.value, ignore)
  }

  const unjudged = () => known.values().filter(({ judgement }) => judgement === 'suspected')

  return {
    /** Adds an item of the first reading. `isForward`: read in list order; `isSeen`: this reading met it before. */
    read(
      listed: ListedItem,
      stored: StoredItem,
      { page, isForward, isSeen }: { page: number; isForward: boolean; isSeen: boolean },
    ): void {
      const found = candidateOf(listed, stored, page, ignore)
      const before = known.get(listed.id)
      if (!isSeen || !before) {
        // First met behind the reader: it was added or moved there after the reader had passed.
        if (found) add({ ...found, judgement: isForward && !isSeen ? 'suspected' : 'moved' })
      } else if (found && isSameValue(before.text, listed)) {
        before.page = page
        if (before.judgement === 'suspected') pages.add(page)
      } else before.judgement = 'moved'
    },
    /** Judges an item of a page that was asked for again. */
    readAgain(listed: ListedItem, stored: StoredItem, page: number): void {
      const before = known.get(listed.id)
      if (before?.judgement !== 'suspected' || before.kind === 'extra') return
      const isStill = candidateOf(listed, stored, page, ignore) !== null && isSameValue(before.text, listed)
      before.judgement = isStill ? 'certain' : 'moved'
    },
    /** Adds a row that the first reading did not meet; `clearExtra`: a later reading met it. */
    addExtra: (id: string): void =>
      add({ id, kind: 'extra', page: null, text: null, paths: [], reject: null, judgement: 'suspected' }),
    clearExtra(id: string): void {
      const before = known.get(id)
      if (before?.kind === 'extra') before.judgement = 'moved'
    },
    hasExtra: () => unjudged().some(({ kind }) => kind === 'extra'),
    /** Confirms the rows that no reading met as extra. */
    confirmExtra(): void {
      for (const candidate of unjudged()) if (candidate.kind === 'extra') candidate.judgement = 'certain'
    },
    /** A page with candidates that wait for a second look; null: there is none. */
    nextPage: (): number | null => pages.values().next().value ?? null,
    /** Ends the second look at a page: what it did not show again has left it. */
    closePage(page: number): void {
      pages.delete(page)
      for (const candidate of unjudged()) if (candidate.page === page) candidate.judgement = 'moved'
    },
    differences: () => ({ ...summary([...known.values()]), isCut }),
  }
}

/** Compares an item with the mirror; null: no difference. */
function candidateOf(
  listed: ListedItem,
  stored: StoredItem,
  page: number,
  ignore: ReadonlySet<string>,
): Omit<Candidate, 'judgement'> | null {
  const { id, item } = listed
  const reject = 'reject' in listed ? listed.reject : null
  if (stored.state === 'same') return null
  if (stored.state === 'absent') return { id, kind: 'missing', page, text: item.text, paths: [], reject }
  const paths = differingPaths(parseExact(stored.text), item.value, ignore, MOST_PATHS + 1)
  return paths.length === 0 ? null : { id, kind: 'different', page, text: item.text, paths, reject }
}

function summary(candidates: readonly Candidate[]): Pick<Differences, 'counts' | 'listed' | 'moved'> {
  const kinds = ['missing', 'extra', 'different'] as const
  const certain = (kind: Difference['kind']) =>
    candidates.filter((one) => one.kind === kind && one.judgement === 'certain')
  // A candidate that no second look found has left the list or moved too far.
  const moved = candidates.filter(
    ({ kind, judgement }) => judgement === 'moved' || (judgement === 'suspected' && kind !== 'extra'),
  )
  return {
    counts: {
      missing: certain('missing').length,
      extra: certain('extra').length,
      different: certain('different').length,
    },
    listed: kinds.flatMap((kind) => certain(kind).toSorted(byPage).slice(0, LISTED).map(difference)),
    moved: moved.length,
  }
}

function byPage({ page: a }: Candidate, { page: b }: Candidate): number {
  return (a ?? 0) - (b ?? 0)
}

function difference({ id, kind, page, paths, reject }: Candidate): Difference {
  return {
    kind,
    key: reject === null ? id : null,
    page,
    paths: paths.slice(0, MOST_PATHS),
    hasMorePaths: paths.length > MOST_PATHS,
    reject,
  }
}

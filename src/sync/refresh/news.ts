import type { RefreshRow } from './end-reading.ts'

/** What a reading from one end has met so far. */
export interface News {
  /** Whether all rows so far are new or changed: a list that is sorted by update has its news in one block at its end. */
  inBlock: boolean
  /** Rows in a row that are old news, after the block. */
  oldInRow: number
  /** Rows in a row that are not new, changed ones included. */
  withoutNew: number
  /** Rows that the mirror did not have before, except those too far inside to show where items are new. */
  added: number
  /** The added rows that come before all rows that the mirror had. */
  leading: number
  /** Distinct items; and those whose rows their answer left unchanged, also if they are news of an earlier answer. */
  items: number
  unchanged: number
}

export const NO_NEWS: News = {
  inBlock: true,
  oldInRow: 0,
  withoutNew: 0,
  added: 0,
  leading: 0,
  items: 0,
  unchanged: 0,
}

/** After more known rows than this, an added one says nothing of this end: a walk missed it, or it is new at the other end. */
const MOST_BEFORE = 5

/** What the rows of an answer are judged by. */
export interface Judging {
  /** Rows that were first seen after `settledAt` are news; `at` is the time that the answer is written with. Epoch milliseconds. */
  settledAt: number
  at: number
  /** The first answer whose items count as met. */
  top: number
}

/** An answer without items counts as this many rows that are not new: else a list of empty pages would be read for ever. */
const EMPTY_ANSWER = 25

/**
 * Counts the rows of an answer.
 * @param rows From the newest to the oldest.
 */
export function countNews(news: News, rows: readonly RefreshRow[], judging: Judging): News {
  if (rows.length === 0) return { ...news, withoutNew: news.withoutNew + EMPTY_ANSWER }
  return rows.reduce((counted, row) => countRow(counted, row, judging), news)
}

function countRow(news: News, row: RefreshRow, judging: Judging): News {
  const { settledAt, at, top } = judging
  // An item that an insertion pushed here says nothing of the rows after it.
  if (isMet(row, top)) return { ...news, withoutNew: news.withoutNew + 1 }
  const items = news.items + 1
  const unchanged = news.unchanged + (isUnchanged(row, at) ? 1 : 0)
  if (isNew(row, settledAt)) {
    const more = countAdded([row], at)
    const added = news.unchanged > MOST_BEFORE ? news.added : news.added + more
    const leading = news.unchanged > 0 ? news.leading : news.leading + more
    return { ...news, items, unchanged, oldInRow: 0, withoutNew: 0, added, leading }
  }
  const inBlock = news.inBlock && !isCalm(row, settledAt)
  return {
    ...news,
    items,
    unchanged,
    inBlock,
    oldInRow: inBlock ? 0 : news.oldInRow + 1,
    withoutNew: news.withoutNew + 1,
  }
}

/** Counts a page that was read before. What is new there slid out of the pages that follow, so these have to be read. */
export function countSlid(news: News, rows: readonly RefreshRow[], { settledAt, at, top }: Judging): News {
  const slid = rows.filter((row) => !isMet(row, top))
  const added = news.added + countAdded(slid, at)
  const items = news.items + slid.length
  return slid.some((row) => isNew(row, settledAt))
    ? { ...news, items, added, oldInRow: 0, withoutNew: 0 }
    : { ...news, items, withoutNew: news.withoutNew + slid.length }
}

/**
 * The news of a list that was read to its other end: rows added after one that the mirror had may be new at that other end. If the mirror had
 * none, nothing shows which end is the newest.
 */
export function ofWholeList(news: News): News {
  return { ...news, added: news.unchanged > 0 ? news.leading : 0 }
}

/** Counts what an answer added that does not decide whether the reading has met known rows. */
export function noteAdded(news: News, rows: readonly RefreshRow[], at: number): News {
  return { ...news, added: news.added + countAdded(rows, at) }
}

function countAdded(rows: readonly RefreshRow[], at: number): number {
  return rows.filter(({ seen }) => seen?.firstAt === at).length
}

function isUnchanged({ seen }: RefreshRow, at: number): boolean {
  return seen === null || seen.changedAt < at
}

/** Whether an answer of this reading held the item before. */
export function isMet({ metIn }: RefreshRow, top: number): boolean {
  return metIn !== null && metIn >= top
}

/** Rows that an unfinished reading wrote are new, too: there may be gaps after them. */
function isNew({ seen }: RefreshRow, settledAt: number): boolean {
  return seen !== null && seen.firstAt > settledAt
}

function isCalm({ seen }: RefreshRow, settledAt: number): boolean {
  return seen !== null && seen.changedAt <= settledAt
}

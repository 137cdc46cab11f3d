import { REFRESH_BUGS } from './freshness/planted.ts'
import { bug, type PlantedBug } from './planted-bug.ts'

export const PLANTED_BUGS: readonly PlantedBug[] = [
  bug('the checkpoint is committed before the rows', 0, [
    'store/sqlite/store.ts',
    'return writePage(job, (tables) => commit.answer(',
    'await transact(() => commit.checkpoint(page.walk.id, page.next, time()))\n      return writePage(job, (tables) => commit.answer(',
  ]),
  bug('a pause that the server asked for is not kept', 52, [
    'store/sqlite/tokens.ts',
    'waitingUntil } = next()',
    'waitingUntil } = { ...next(), closedUntil: 0 }',
  ]),
  bug('a pause ends before the server said', 0, [
    'api/rate/answers.ts',
    'announced.retryAfterMs ?? announced.resetMs',
    'announced.retryAfterMs === null ? null : announced.retryAfterMs / 4',
  ]),
  bug('each process has our own limit for itself', 0, [
    'api/rate/budget.ts',
    'JSON.stringify({ ...budget, closedUntil: undefined })',
    'JSON.stringify({ ...budget, closedUntil: undefined, sent: [], inFlight: [] })',
  ]),
  bug(
    'a server that failed is asked again before it said',
    0,
    ['api/rate/answers.ts', 'announced?.retryAfterMs ? at + announced.retryAfterMs : 0', '0 * at'],
    [
      'api/retry.ts',
      'Math.ceil(Math.max(delay, retryAfterMs ?? 0))',
      'Math.ceil(retryAfterMs === null ? delay : Math.min(delay, retryAfterMs))',
    ],
  ),
  bug('the hold of a refused token is not kept', 0, [
    'store/sqlite/tokens.ts',
    'for (const id of organizationIds) hold.run(at, reason, id, { fingerprint })',
    'void [organizationIds, hold, at, reason, fingerprint]',
  ]),
  bug('a hold is asked for before the wait for the rate limit alone', 9, [
    'api/client.ts',
    'hold.check()\n',
    '\n',
  ]),
  bug(
    'a 401 is tried again',
    0,
    ['api/client.ts', 'import { RateLimitedError,', 'import { RetryableError, RateLimitedError,'],
    [
      'api/client.ts',
      'if (status === 401) {',
      "if (status === 401) {\n    throw new RetryableError('SERVER_ERROR', '401')",
    ],
  ),
  bug('start tries a token that is held', 30, [
    'cli/token-holds.ts',
    'if (!tryHeldTokens) await assertNotHeld(',
    'if (tryHeldTokens) await assertNotHeld(',
  ]),
  bug('any answer lifts a hold', 35, ['api/token-hold.ts', 'if (!isTrying()) return\n', '\n']),
  bug('a job is taken without a look at its owner', 0, [
    'store/sqlite/leases.ts',
    'owner && isAlive(owner)',
    'owner && isAlive(owner) && false',
  ]),
  bug('a page that is asked for again counts as new', 7, [
    'sync/resume.ts',
    'for (const entry of answers) seen.add(entry)',
    'for (const entry of answers) seen.add({ ...entry, ids: [] })',
  ]),
  bug('a page counts twice in its run', 0, [
    'store/sqlite/walks/commit.ts',
    'rows_seen = rows_seen + ?,\n      rows_added',
    'rows_seen = rows_seen + 2 * ?,\n      rows_added',
  ]),
  bug('a superseded version is lost', 0, [
    'store/sqlite/tables/rows.ts',
    'if (changedFields) statements',
    'if (changedFields && key.length > 1) statements',
  ]),
  bug('a superseded version is kept twice', 0, [
    'store/sqlite/tables/rows.ts',
    'if (changedFields) statements.keepVersion',
    'for (const _ of changedFields ? [1, 2] : []) statements.keepVersion',
  ]),
  bug('a walk goes on one page too far', 19, [
    'sync/coverage/overlap.ts',
    'state: overlapping }, state.frontier.page)',
    'state: overlapping }, state.frontier.page + 2)',
  ]),
  bug('a walk goes on three pages back', 19, [
    'sync/coverage/overlap.ts',
    'state: overlapping }, state.frontier.page)',
    'state: overlapping }, Math.max(rules.firstPage, state.frontier.page - 2))',
  ]),
  bug('the run of a dead process stays open', 0, [
    'store/sqlite/walks/runs.ts',
    'closeDead.run(at, job.organization.id, job.collection.name, NO_RUN)\n',
    'void closeDead\n',
  ]),
  bug('a walk that stood still for days goes on', 5, [
    'sync/resume.ts',
    'resumeWithin === null || now - walk.updatedAt <= resumeWithin',
    'resumeWithin === null || now - walk.updatedAt <= resumeWithin * 100',
  ]),
  bug('a full backfill gives the walk of sync up before it has a page', 87, [
    'sync/resume.ts',
    'const abandoned = own.filter((walk) => walk !== resumed)',
    'const abandoned = [...own.filter((walk) => walk !== resumed), ...replaced]',
  ]),
  bug('an item in other words counts as changed', 0, [
    'sync/page-writer.ts',
    'sameJson(before, value, ignore)',
    'known.text === item.text',
  ]),
  bug('a change leaves the time of the typed row as it was', 0, [
    'store/sqlite/tables/rows.ts',
    'DO UPDATE SET ${written.map(',
    'DO UPDATE SET ${written.slice(written.length > 2 ? 2 : 1).map(',
  ]),
  bug('the number of requests in flight has no bound', 3, [
    'api/client.ts',
    'pLimit(options.concurrency)',
    'pLimit(options.concurrency + 1)',
  ]),
  bug('a stop is not heard while the mirror is locked', 110, [
    'store/sqlite/transaction.ts',
    'const STOPPING_MS = 2000',
    'const STOPPING_MS = 20_000',
  ]),
  bug('what a run has cost is written at its end alone', 0, [
    'store/sqlite/walks/commit.ts',
    '...trafficNumbers(run.traffic), run.id, {',
    '...trafficNumbers(run.traffic).map(() => 0), run.id, {',
  ]),
  bug('what fell out of the total is not looked for', 31, [
    'sync/coverage/forward.ts',
    'const isFall = near === 0 && rise < 0',
    'const isFall = near === 0 && rise < 0 && page.number === 0',
  ]),
  bug(
    'a reading counts as repaired because its sums agree',
    { kind: 'updates to end', walks: 4, missing: 1, extra: 120 },
    [
      'sync/coverage/verdict.ts',
      'const isWhole = !isShort && pass > 1 && !state.totalChanged && distinct === total',
      'const isWhole = passDistinct + passRepeated >= total',
    ],
  ),
  bug('the front is not read at the end', { kind: 'updates to front', walks: 4, missing: 0, extra: 5 }, [
    'sync/coverage/front.ts',
    'if (!mayAskAgain(state)) return closeFront(from)',
    'if (mayAskAgain(state) || page > 0) return closeFront(from)',
  ]),
  bug('nobody looks back', { kind: 'purge oldest + append', walks: 12, missing: 20, extra: 5 }, [
    'sync/coverage/advance.ts',
    'if (!isDue) return next',
    'if (!isDue || frontier.page > 0) return next',
  ]),
  bug('the first movement alone is looked back from', { kind: 'resonance', walks: 2, missing: 0, extra: 5 }, [
    'sync/coverage/look-back.ts',
    "export function firstAnchor({ lastPage }: Pick<CoverageState, 'lastPage'>): number {\n  return Math.min(SPAN, Math.ceil(lastPage / 2))",
    'export function firstAnchor({ lastPage, frontier }: CoverageState): number {\n  return Math.max(SPAN, Math.ceil(lastPage / 2), frontier?.page ?? 1)',
  ]),
  bug('a walk goes on without asking again where it stood', 19, [
    'sync/coverage/overlap.ts',
    "if (nextPage === null || state.frontier === null || asks === 'overlap') return from",
    "if (nextPage === null || state.frontier === null || asks === 'overlap' || asks === 'forward') return from",
  ]),
  bug('one walk is enough to remove', 4, [
    'store/sqlite/walks/missing.ts',
    "state: atOnce ? 'removable' : 'missed'",
    "state: 'removable'",
  ]),
  bug('what is held back goes with the next walk', 17, [
    'sync/removals.ts',
    "if (held > 0) return { hold: 'earlier' }",
    "if (held > 0) return 'remove'",
  ]),
  bug('removals that are held back go by themselves, while new ones wait', 17, [
    'sync/removals.ts',
    "if (held > 0) return { hold: 'earlier' }",
    "if (held > 0 && removable > 0) return 'remove'",
  ]),
  bug('a partial walk removes', 64, [
    'sync/end-walk.ts',
    "const isFull = walk.kind === 'full'",
    "const isFull = walk.kind !== ''",
  ]),
  bug('a row that was seen again counts as missed before', 4, [
    'store/sqlite/walks/commit.ts',
    'if (hasMissing.get(nameOf(job)) === undefined) return',
    'if (hasMissing.get(nameOf(job)) === undefined || keys.length > 0) return',
  ]),
  bug('the history loses what was removed', 4, [
    'store/sqlite/walks/missing.ts',
    'if (history !== false) keepVersions(',
    'if (history === 0) keepVersions(',
  ]),
  bug(
    'what other filters hide counts as removed',
    4,
    [
      'store/sqlite/walks/missing.ts',
      "reason: isOtherScope || isMixed ? 'out_of_scope' : 'removed'",
      "reason: 'removed'",
    ],
    [
      'store/sqlite/walks/missing.ts',
      "iif(:isOtherScope, 'out_of_scope', reason)",
      'iif(:isOtherScope, reason, reason)',
    ],
  ),
  bug('a walk asks for its next page before a refresh', 9, [
    'sync/walk.ts',
    'if (next.ask && !givesWay)',
    'if (next.ask)',
  ]),
  bug('a walk counts the rows of a refresh', 9, [
    'sync/refresh/refresher.ts',
    'const tools = toolsOf(run)\n    let error',
    'const tools = toolsOf(within ?? run)\n    let error',
  ]),
  bug('an open walk does not know what a refresh saw', 20, [
    'store/sqlite/walks/commit.ts',
    'countAsSeen.run({',
    'void ({',
  ]),
  bug('a refresh claims what came while it read', 9, [
    'sync/refresh/refresh.ts',
    'Math.max(startedAt, state.freshAsOf)',
    'Math.max(at, state.freshAsOf)',
  ]),
  bug('the brake is blind to an empty list', 24, [
    'sync/removals.ts',
    "if (listed === 0) return 'empty'",
    "if (listed < 0) return 'empty'",
  ]),
  ...REFRESH_BUGS,
]

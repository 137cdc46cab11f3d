import type { Patch } from '../helpers/patch.ts'

/** A mistake that the simulation must find, and a seed whose history does. */
export interface PlantedBug {
  name: string
  patches: Patch[]
  seed: number
}

function bug(
  name: string,
  seed: number,
  ...patches: [file: string, find: string, replace: string][]
): PlantedBug {
  return {
    name,
    seed,
    patches: patches.map(([file, find, replace]) => ({ file: `src/${file}`, find, replace })),
  }
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  bug('the checkpoint is committed before the rows', 0, [
    'mirror/mirror.ts',
    'let saved = nothingSaved()\n',
    'let saved = nothingSaved()\n      await transact(() => walks.saveCheckpoint(walk.id, next, time()))\n',
  ]),
  bug('a gate that has closed is not kept', 15, [
    'mirror/registry.ts',
    'saveGate.run(scope, ...gateValues(keep))',
    'saveGate.run(scope, ...gateValues({ ...keep, closedUntil: 0 }))',
  ]),
  bug('a gate opens before the server said', 27, [
    'api/rate-answer.ts',
    'told.retryAfterMs ?? told.resetMs',
    'told.retryAfterMs === null ? null : told.retryAfterMs / 4',
  ]),
  bug('each process has our own limit for itself', 5, [
    'api/rate-budget.ts',
    'JSON.stringify({ ...budget, closedUntil: undefined })',
    'JSON.stringify({ ...budget, closedUntil: undefined, sent: [], blocks: [] })',
  ]),
  bug(
    'a server that failed is asked again before it said',
    10,
    ['api/rate-answer.ts', 'told?.retryAfterMs ? at + told.retryAfterMs : 0', '0 * at'],
    [
      'api/retry.ts',
      'Math.ceil(Math.max(delay, retryAfterMs ?? 0))',
      'Math.ceil(retryAfterMs === null ? delay : Math.min(delay, retryAfterMs))',
    ],
  ),
  bug('the hold of a refused token is not kept', 0, [
    'mirror/registry.ts',
    'for (const id of organizationIds) hold.run(at, reason, id, { fingerprint })',
    'void [organizationIds, hold, at, reason, fingerprint]',
  ]),
  bug('a hold is asked for before the wait at the gate alone', 0, ['api/client.ts', 'guard.check()\n', '\n']),
  bug(
    'a 401 is tried again',
    0,
    ['api/client.ts', 'import { ThrottledError,', 'import { PassingError, ThrottledError,'],
    [
      'api/client.ts',
      'if (status === 401) {',
      "if (status === 401) {\n    throw new PassingError('SERVER_ERROR', '401')",
    ],
  ),
  bug('start tries a token that is held', 4, [
    'cli/session.ts',
    'if (!tryHeldTokens) assertNotHeld(',
    'if (tryHeldTokens) assertNotHeld(',
  ]),
  bug('any answer lifts a hold', 1601, ['api/token-guard.ts', 'if (!isTrying()) return\n', '\n']),
  bug('a job is taken without a look at its owner', 0, [
    'mirror/owners.ts',
    'owner && isAlive(path.join(folder, owner))',
    'owner && isAlive(path.join(folder, owner)) && false',
  ]),
  bug('a page that is asked for again counts as new', 0, [
    'mirror/mirror.ts',
    'ordinal = guarded(file, () => walks.recall(walkId, ordinal ?? 0, pages))',
    'ordinal = null',
  ]),
  bug('a page counts twice in its run', 0, [
    'mirror/run-store.ts',
    'rows_seen = rows_seen + ?,\n      rows_added',
    'rows_seen = rows_seen + 2 * ?,\n      rows_added',
  ]),
  bug('a superseded version is lost', 0, [
    'mirror/collection.ts',
    'if (keep)\n',
    'if (keep && key.length > 1)\n',
  ]),
  bug('a superseded version is kept twice', 0, [
    'mirror/collection.ts',
    'statements.updateRaw.run(json',
    "if (keep) statements.insertHistory.run(organizationId, ...bind(key), row._json, row._changed_at, at, 'changed')\n" +
      '      statements.updateRaw.run(json',
  ]),
  bug('a walk goes on one page too far', 0, [
    'sync/coverage/overlap.ts',
    'account: overlapping }, account.edge.page)',
    'account: overlapping }, account.edge.page + 2)',
  ]),
  bug('a walk goes on three pages back', 0, [
    'sync/coverage/overlap.ts',
    'account: overlapping }, account.edge.page)',
    'account: overlapping }, Math.max(rules.firstPage, account.edge.page - 2))',
  ]),
  bug('the run of a dead process stays open', 0, [
    'mirror/run-store.ts',
    'closeDead.run(at, organization.id, collection.name)\n',
    'void closeDead\n',
  ]),
  bug('a walk that stood still for days goes on', 10, [
    'sync/resume.ts',
    'resumeWithin === null || now - walk.updatedAt <= resumeWithin',
    'resumeWithin === null || now - walk.updatedAt <= resumeWithin * 100',
  ]),
  bug('a full backfill gives the walk of sync up before it has a page', 7, [
    'sync/resume.ts',
    'const abandoned = own.filter((walk) => walk !== resumed)',
    'const abandoned = [...own.filter((walk) => walk !== resumed), ...replaced]',
  ]),
  bug('an item in other words counts as changed', 0, [
    'mirror/saving.ts',
    '!sameJson(parseExact(row._json), value, new Set(collection.ignore))',
    'row._json !== text',
  ]),
  bug('a change leaves the time of the typed row as it was', 0, [
    'mirror/row-statements.ts',
    `['"_first_seen_at"', '"_changed_at"', ...valueColumns.map(quoted)]`,
    `valueColumns.length === 0 ? ['"_changed_at"'] : valueColumns.map(quoted)`,
  ]),
  bug('the number of requests in flight has no bound', 0, [
    'api/client.ts',
    'pLimit(options.concurrency)',
    'pLimit(options.concurrency + 1)',
  ]),
  bug('a stop is not heard while the mirror is locked', 230, [
    'mirror/transaction.ts',
    'const STOPPING_MS = 2000',
    'const STOPPING_MS = 20_000',
  ]),
  bug('what a run has cost is written at its end alone', 0, [
    'mirror/run-store.ts',
    'addPage.run(items, added, changed, ...numbers(traffic), id)',
    'addPage.run(items, added, changed, ...numbers(traffic).map(() => 0), id)',
  ]),
]

import type { JobError } from '../../errors.ts'
import type { Acquired, Lease, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { closeWalk } from '../core/close.ts'
import { asOwner, namesOf, OF_JOB, ownerWork, ownJobOf } from '../core/jobs.ts'
import { noteMissing } from '../core/missing.ts'
import { type Keys, one, type Rule, run, timeOf } from '../core/sql.ts'
import { createStore, leaseOf, type Machinery } from '../core/store.ts'
import { refusalOf } from '../core/tables.ts'
import { assertAddress } from './address.ts'
import { POSTGRES, runRule } from './driver.ts'
import type { Leases } from './leases.ts'
import type { Patience, Server } from './server/server.ts'
import { createCollections } from './tables/collection.ts'
import { commitPage } from './walks/commit.ts'

export interface PostgresStoreOptions extends Pick<Patience, 'now' | 'signal'> {
  server: Server
  leases: Leases
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The store on a PostgreSQL schema, for any number of workers. */
export function openPostgresStore({
  server,
  leases,
  baseUrl,
  keepRuns,
  now,
  signal,
}: PostgresStoreOptions): Store {
  const collections = createCollections(server)
  const reading = <T>(rule: Rule<T>) => runRule(server, rule)
  const writing = <T>(begin: () => Rule<T>) => server.transaction((sql) => runRule(sql, begin()))
  const owning = <T>(lease: Lease, begin: (keys: Keys, at: string) => Rule<T>) =>
    collections.retrying(lease.job, ({ shape }) =>
      writing(() => asOwner(POSTGRES, ownJobOf(lease), () => begin(shape, timeOf(now())))),
    )
  const machinery: Machinery = {
    dialect: POSTGRES,
    now,
    reading,
    writing,
    readingRows: (job, begin) => collections.retrying(job, ({ shape }) => reading(begin(shape))),
    writePage: (lease, page) => commitPage(server, collections, ownJobOf(lease), page),
    noteMissing: (lease, judged) =>
      owning(lease, (keys, at) => noteMissing(POSTGRES, keys, { ...judged, at })),
    closeWalk: (lease, closing) => owning(lease, (keys, at) => closeWalk(POSTGRES, keys, { ...closing, at })),
    async inBatches(batch) {
      while (!(await batch())) if (signal.aborted) return false
      return !signal.aborted
    },
  }

  /** Takes the job whose lock we have. Its former owner can write nothing from then on. */
  function takeOver(job: Job, isVerify: boolean): Promise<Lease> {
    return server.transaction(async (sql) => {
      await assertAddress(sql, baseUrl)
      const refusal = await runRule(sql, refusalOf(POSTGRES, job.collection))
      return runRule(sql, takenOver(job, { owner: leases.name, isVerify, refusal }))
    })
  }

  return {
    ...createStore(machinery, keepRuns),
    async acquire(job, isVerify = false) {
      const { organization, collection } = namesOf(job)
      if (!(await leases.lock(organization, collection))) return reading(heldByOther(job))
      try {
        return { lease: await takeOver(job, isVerify) }
      } catch (error) {
        await leases.unlock(organization, collection)
        throw error
      }
    },
    async release(lease) {
      const { job, epoch } = ownJobOf(lease)
      try {
        await reading(run(RELEASE, { ...job, epoch }))
      } finally {
        // Nobody could read a list whose lock stays while this process lives.
        await leases.unlock(job.organization, job.collection)
      }
    },
  }
}

/**
 * After a failover that lost commits the sequence may give numbers again that living workers have: by chance, none of them is
 * whole the same.
 */
export const NEW_EPOCH = "nextval('sync_epochs') * 1000000 + floor(random() * 1000000)::bigint"

const TAKE_OVER = `
  INSERT INTO sync_jobs (organization_id, collection, configured, owner, epoch, verifying)
  VALUES (:organization, :collection, 1, :owner, ${NEW_EPOCH}, :verifying)
  ON CONFLICT (organization_id, collection) DO UPDATE
  SET owner = excluded.owner, epoch = excluded.epoch, verifying = excluded.verifying,
    retry_since = NULL, retry_until = NULL, retry_error = NULL
  RETURNING epoch
`

interface Taking {
  owner: string
  isVerify: boolean
  refusal: JobError | null
}

function* takenOver(job: Job, { owner, isVerify, refusal }: Taking): Rule<Lease & { epoch: number }> {
  const { id, name } = job.organization
  yield* run(
    'INSERT INTO organizations (id, name, configured) VALUES (:id, :name, 1) ON CONFLICT (id) DO NOTHING',
    { id, name },
  )
  const row = yield* one<{ epoch: number }>(TAKE_OVER, {
    ...namesOf(job),
    owner,
    verifying: isVerify ? 1 : 0,
  })
  return { ...(yield* leaseOf(job, refusal)), epoch: row?.epoch ?? 0 }
}

const RELEASE = `UPDATE sync_jobs SET owner = NULL, verifying = 0 WHERE ${OF_JOB} AND epoch = :epoch`

/** Who has a job whose lock is taken, and what that one does. */
function* heldByOther(job: Job): Rule<Acquired & { heldBy: string }> {
  const known = yield* one<{ owner: string | null }>(
    `SELECT owner FROM sync_jobs WHERE ${OF_JOB}`,
    namesOf(job),
  )
  if (!known || known.owner === null) return { heldBy: 'another process', work: null }
  return { heldBy: known.owner, work: yield* ownerWork(job, known.owner) }
}

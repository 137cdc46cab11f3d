import type { OwnerWork, RunningRun } from '../../../sync/lease.ts'
import type { Job } from '../../../sync/types.ts'
import { runningRunSql } from '../../status.ts'
import type { Connection } from '../sql.ts'
import { nameOf, OF_JOB } from './jobs.ts'

/** Returns the function that reads what the owner of a job does. `owner`: the name of its lock file. */
export function createOwnerReader(
  connection: Connection,
): (job: Pick<Job, 'organization' | 'collection'>, owner: string) => OwnerWork {
  const findDaemon = connection.prepare("SELECT 1 FROM sync_settings WHERE name = 'daemon ' || ?").pluck()
  const isVerify = connection.prepare(`SELECT verifying FROM sync_jobs WHERE ${OF_JOB}`).pluck()
  const findRun = connection.prepare(runningRunSql(':organization', ':collection'))
  return (job, owner) => ({
    isDaemon: findDaemon.get(owner) === 1,
    isVerify: isVerify.get(nameOf(job)) === 1,
    run: (findRun.get(nameOf(job)) as RunningRun | undefined) ?? null,
  })
}
